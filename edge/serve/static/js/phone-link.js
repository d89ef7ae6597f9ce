// @ts-check
// The link to the device: publishes over WHIP (RFC 9725), notices within seconds when it is gone, and comes back by itself.
// @ts-check

/** @typedef {'idle'|'connecting'|'live'|'lost'|'failed'} LinkState */

const BEAT_MS = 1000; // a heartbeat is sent so often
const DEAD_MS = 4000; // and without an echo for so long the link is dead
const CONNECT_MS = 10000; // a link that has not come up by then is tried anew
const GATHER_MS = 600; // candidates that come later are trickled
const WAITS_MS = [300, 700, 1500, 3000, 4000]; // between tries; the last is kept
const MAX_BITRATE = 2_000_000; // bit/s of the picture

/**
 * A refusal that trying again does not change.
 */
export class Refused extends Error {}

/**
 * The codecs with H264 constrained baseline first: iPhones encode it in hardware, and the device decodes it fastest.
 * @template {{mimeType: string, sdpFmtpLine?: string}} C
 * @param {C[]} codecs
 * @returns {C[]}
 */
export function preferred(codecs) {
  /** @param {C} codec */
  const rank = (codec) => {
    const line = codec.sdpFmtpLine ?? '';
    if (codec.mimeType === 'video/H264' && /packetization-mode=1/.test(line) && /profile-level-id=42[ce]0/i.test(line)) return 0;
    if (codec.mimeType === 'video/VP8') return 1;
    return 2;
  };
  return codecs.map((codec, at) => ({ codec, at })).sort((a, b) => rank(a.codec) - rank(b.codec) || a.at - b.at).map((one) => one.codec);
}

/**
 * A fragment with further candidates (RFC 8840).
 * @param {string} offer
 * @param {RTCIceCandidate[]} candidates
 * @param {boolean} complete
 * @returns {string}
 */
export function fragment(offer, candidates, complete) {
  /** @param {string} name */
  const line = (name) => offer.split(/\r?\n/).find((one) => one.startsWith(name)) ?? '';
  const lines = [line('a=ice-ufrag:'), line('a=ice-pwd:'), line('m='), line('a=mid:')];
  for (const one of candidates) lines.push(`a=${one.candidate}`);
  if (complete) lines.push('a=end-of-candidates');
  return `${lines.join('\r\n')}\r\n`;
}

/**
 * Publishes two tracks as one camera. Events: `state` (detail: {state, words}), `camera` (detail: its name).
 */
export class Link extends EventTarget {
  /** @param {string|null} camera its name; null: that of this device */
  constructor(camera) {
    super();
    this.camera = camera;
    /** @type {LinkState} */
    this.state = 'idle';
    this.wanted = false;
    this.tries = 0;
    /** @type {MediaStreamTrack|null} */
    this.picture = null;
    /** @type {MediaStreamTrack|null} */
    this.sound = null;
    /** @type {RTCPeerConnection|null} */
    this.connection = null;
    /** @type {string|null} */
    this.location = null;
    this.paused = false;
    this.echoed = 0;
    /** @type {number|undefined} */
    this.retry = undefined;
    /** @type {number|undefined} */
    this.beat = undefined;
  }

  /** Publish, and keep on publishing until `stop`. */
  start() {
    this.wanted = true;
    this.tries = 0;
    this.again(0);
  }

  /** Stop, and tell the device so. */
  async stop() {
    this.wanted = false;
    const location = this.location;
    this.drop();
    this.tell('idle', 'Not started');
    if (location) await fetch(location, { method: 'DELETE', keepalive: true }).catch(() => undefined);
  }

  /** Try at once: the network is back or the page was woken. */
  wake() {
    if (!this.wanted) return;
    if (this.state === 'live' && performance.now() - this.echoed < DEAD_MS) return;
    this.tries = 0;
    this.again(0);
  }

  /**
   * Send other tracks; null sends nothing.
   * @param {MediaStreamTrack|null} picture
   * @param {MediaStreamTrack|null} sound
   */
  async use(picture, sound) {
    this.picture = picture;
    this.sound = sound;
    for (const transceiver of this.connection?.getTransceivers() ?? []) {
      const track = transceiver.receiver.track.kind === 'video' ? picture : sound;
      await transceiver.sender.replaceTrack(this.paused ? null : track).catch(() => undefined);
    }
  }

  /**
   * Have nothing remembered, or go on. While paused neither picture nor sound leaves this phone.
   * @param {boolean} paused
   */
  async pause(paused) {
    this.paused = paused;
    await this.use(this.picture, this.sound);
    if (this.location) await this.say(paused);
  }

  /** @param {boolean} paused */
  async say(paused) {
    const answer = await fetch(`${this.location}/${paused ? 'pause' : 'resume'}`, { method: 'POST' });
    if (!answer.ok && answer.status !== 404) throw new Error(`the device refused (${answer.status})`);
  }

  /** @param {number} wait ms */
  again(wait) {
    clearTimeout(this.retry);
    this.drop();
    if (!this.wanted) return;
    this.retry = setTimeout(() => void this.attempt(), wait);
  }

  async attempt() {
    this.tell('connecting', this.tries ? 'Reconnecting…' : 'Connecting…');
    try {
      await this.connect();
    } catch (error) {
      if (error instanceof Refused) {
        this.wanted = false;
        this.drop();
        this.tell('failed', error.message);
        return;
      }
      this.lost('The device cannot be reached');
    }
  }

  /** @param {string} words */
  lost(words) {
    if (!this.wanted) return;
    const wait = WAITS_MS[Math.min(this.tries, WAITS_MS.length - 1)] ?? 4000;
    this.tries += 1;
    this.tell('lost', `${words}; trying again…`);
    this.again(wait);
  }

  async connect() {
    const connection = new RTCPeerConnection({ bundlePolicy: 'max-bundle' });
    this.connection = connection;
    const current = () => this.connection === connection;
    const picture = connection.addTransceiver((!this.paused && this.picture) || 'video', {
      direction: 'sendonly',
      sendEncodings: [{ maxBitrate: MAX_BITRATE }],
    });
    connection.addTransceiver((!this.paused && this.sound) || 'audio', { direction: 'sendonly' });
    const codecs = RTCRtpSender.getCapabilities('video')?.codecs;
    if (codecs && 'setCodecPreferences' in picture) picture.setCodecPreferences(preferred(codecs));
    const channel = connection.createDataChannel('heartbeat', { ordered: false, maxRetransmits: 0 });
    const notices = connection.createDataChannel('notices');
    notices.addEventListener('message', (event) => {
      if (current()) this.dispatchEvent(new CustomEvent('notice', { detail: JSON.parse(event.data) }));
    });

    /** @type {RTCIceCandidate[]} */
    const late = [];
    let posted = '';
    let complete = false;
    let etag = '';
    const trickle = async () => {
      if (!current() || !posted || !this.location || (!late.length && !complete)) return;
      const body = fragment(posted, late.splice(0), complete);
      const headers = { 'Content-Type': 'application/trickle-ice-sdpfrag', 'If-Match': etag };
      await fetch(this.location, { method: 'PATCH', headers, body }).catch(() => undefined);
    };
    connection.addEventListener('icecandidate', (event) => {
      if (event.candidate?.candidate && posted) late.push(event.candidate);
      if (!event.candidate) complete = true;
      if (posted) void trickle();
    });
    connection.addEventListener('connectionstatechange', () => {
      if (current() && (connection.connectionState === 'failed' || connection.connectionState === 'closed')) this.lost('The link broke');
    });
    channel.addEventListener('close', () => { if (current()) this.lost('The link broke'); });
    channel.addEventListener('message', () => {
      this.echoed = performance.now();
      if (current() && this.state !== 'live') {
        this.tries = 0;
        this.tell('live', 'Live');
      }
    });

    await connection.setLocalDescription();
    await gathered(connection, GATHER_MS);
    if (!current()) return;
    posted = connection.localDescription?.sdp ?? '';
    const answer = await fetch(this.camera === null ? '/whip' : `/whip/${encodeURIComponent(this.camera)}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/sdp' },
      body: posted,
      signal: AbortSignal.timeout(CONNECT_MS),
    });
    await refuse(answer);
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const location = answer.headers.get('Location') ?? '';
    if (!current()) {
      void fetch(location, { method: 'DELETE', keepalive: true }).catch(() => undefined);
      return;
    }
    this.location = location;
    etag = answer.headers.get('ETag') ?? '';
    const name = decodeURIComponent(location.split('/')[2] ?? '');
    this.dispatchEvent(new CustomEvent('camera', { detail: name }));
    await connection.setRemoteDescription({ type: 'answer', sdp: await answer.text() });
    if (!current()) return;
    void trickle();
    if (this.paused) await this.say(true).catch(() => undefined);
    this.echoed = performance.now();
    const began = this.echoed;
    this.beat = setInterval(() => {
      const now = performance.now();
      if (channel.readyState === 'open') channel.send(String(Math.round(now)));
      if (this.state === 'live' ? now - this.echoed > DEAD_MS : now - began > CONNECT_MS) this.lost('The link broke');
    }, BEAT_MS);
  }

  drop() {
    clearInterval(this.beat);
    clearTimeout(this.retry);
    const connection = this.connection;
    this.connection = null;
    this.location = null;
    connection?.close();
  }

  /**
   * @param {LinkState} state
   * @param {string} words
   */
  tell(state, words) {
    this.state = state;
    this.dispatchEvent(new CustomEvent('state', { detail: { state, words } }));
  }
}

/**
 * Wait until all candidates of this phone are known, but not for long.
 * @param {RTCPeerConnection} connection
 * @param {number} ms
 */
function gathered(connection, ms) {
  return new Promise((resolve) => {
    const done = () => resolve(undefined);
    setTimeout(done, ms);
    connection.addEventListener('icegatheringstatechange', () => {
      if (connection.iceGatheringState === 'complete') done();
    });
    if (connection.iceGatheringState === 'complete') done();
  });
}

/** @param {Response} answer */
async function refuse(answer) {
  if (![400, 401, 403, 409, 415].includes(answer.status)) return;
  const problem = await answer.json().catch(() => ({}));
  throw new Refused(problem.detail ?? 'The device refused this phone.');
}
