// @ts-check
// Pairs this browser: takes the one-time token out of the address, asks for a name, and sends both.
// @ts-check

/**
 * What the code carried behind the #. Browsers send that part to nobody.
 * @param {string} hash
 * @returns {{token: string, fingerprint: string}}
 */
export function readHash(hash) {
  const parts = new URLSearchParams(hash.replace(/^#/, ''));
  return { token: parts.get('token') ?? '', fingerprint: grouped(parts.get('fp') ?? '') };
}

/**
 * A fingerprint as browsers show it.
 * @param {string} encoded base64url
 * @returns {string} pairs of hex digits joined by colons; empty: not one
 */
export function grouped(encoded) {
  try {
    const bytes = atob(encoded.replaceAll('-', '+').replaceAll('_', '/'));
    if (bytes.length !== 32) return '';
    return Array.from(bytes, (c) => c.charCodeAt(0).toString(16).padStart(2, '0')).join(':').toUpperCase();
  } catch {
    return '';
  }
}

/**
 * A name to begin with.
 * @param {string} agent
 * @returns {string}
 */
export function guessName(agent) {
  for (const [word, name] of [['iPhone', 'iPhone'], ['iPad', 'iPad'], ['Android', 'Android phone'], ['Mac', 'Mac'], ['Windows', 'PC']]) {
    if (agent.includes(word)) return name;
  }
  return 'computer';
}

/** @param {string} id @returns {any} */
const element = (id) => document.getElementById(id);

/** @param {string} words */
function complain(words) {
  element('status').textContent = words;
  element('status').hidden = words === '';
}

/**
 * @param {string} token
 * @param {string} name
 */
async function pair(token, name) {
  complain('');
  element('pair').disabled = true;
  try {
    const answer = await fetch('/pair', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ token, name }),
    });
    const body = await answer.json();
    if (!answer.ok) {
      complain(answer.status === 401 ? 'The invitation is over; run “reflectworld pair” for a new code.' : body.detail);
      return;
    }
    element('form').hidden = true;
    element('called').textContent = body.device.name;
    element('key').textContent = body.key;
    for (const scope of ['publish', 'ask']) {
      element(scope).hidden = !body.device.scopes.some((/** @type {string} */ one) => one === scope || one === 'admin');
    }
    element('done').hidden = false;
    element('done-title').scrollIntoView();
  } catch {
    complain('The device does not answer. Is the phone still in the same network?');
  } finally {
    element('pair').disabled = false;
  }
}

const { token, fingerprint } = readHash(location.hash);
// The token must stay neither in the address bar nor in the history.
history.replaceState(null, '', location.pathname);
if (fingerprint !== '') element('fingerprint').textContent = fingerprint;
if (token === '') {
  complain('This address has no token. On the device, run “reflectworld pair” and scan its code.');
} else {
  element('name').value = guessName(navigator.userAgent);
  element('form').hidden = false;
  element('form').addEventListener('submit', (/** @type {Event} */ event) => {
    event.preventDefault();
    void pair(token, element('name').value);
  });
}
element('copy').addEventListener('click', async () => {
  try {
    await navigator.clipboard.writeText(element('key').textContent);
    element('copy').textContent = 'Copied';
  } catch {
    getSelection()?.selectAllChildren(element('key'));
  }
});
