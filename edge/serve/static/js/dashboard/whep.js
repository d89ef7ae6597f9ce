// @ts-check
/** Watching a camera over WebRTC (WHEP), where the device offers it. */

const PATIENCE_MS = 12_000; // a connection that has not come up by then does not come
const DISCONNECTED_MS = 5000; // what is lost for a moment comes back by itself

/** There is no video to be had here, now or later. */
export class Never extends Error {}

/**
 * Show a camera in a video element.
 * @param {HTMLVideoElement} video
 * @param {string} camera
 * @param {() => void} lost called once when the picture ends
 * @param {AbortSignal} signal gives up waiting for it
 * @returns {Promise<() => void>} ends it; rejects where it cannot be had: with a `Never` where it never can
 */
export async function watch(video, camera, lost, signal) {
  if (!("RTCPeerConnection" in window)) throw new Never("This browser has no WebRTC.");
  const peer = new RTCPeerConnection();
  /** @type {string | null} */
  let session = null;
  let ended = false;
  const stream = new MediaStream();
  const end = () => {
    if (ended) return;
    ended = true;
    peer.close();
    if (video.srcObject === stream) video.srcObject = null; // else another camera is shown already
    if (session) fetch(session, { method: "DELETE", keepalive: true }).catch(() => undefined);
  };
  try {
    peer.addTransceiver("video", { direction: "recvonly" });
    peer.addEventListener("track", (event) => stream.addTrack(event.track));
    await peer.setLocalDescription();
    await gathered(peer);
    const answer = await fetch(`/whep/${encodeURIComponent(camera)}`, {
      method: "POST",
      headers: { "Content-Type": "application/sdp" },
      body: peer.localDescription?.sdp ?? "",
      signal,
    });
    if (answer.status !== 201) throw new (answer.status === 404 || answer.status === 405 ? Never : Error)(`no WHEP here (${answer.status})`);
    session = answer.headers.get("Location");
    await peer.setRemoteDescription({ type: "answer", sdp: await answer.text() });
    await connected(peer, signal);
    await playing(video, stream, peer, signal);
  } catch (error) {
    end();
    throw error;
  }
  const over = () => {
    if (ended) return;
    end();
    lost();
  };
  peer.addEventListener("connectionstatechange", () => {
    if (["failed", "closed"].includes(peer.connectionState)) over();
    else if (peer.connectionState === "disconnected") {
      setTimeout(() => { if (peer.connectionState !== "connected") over(); }, DISCONNECTED_MS);
    }
  });
  for (const track of stream.getTracks()) track.addEventListener("ended", over);
  return end;
}

/** @param {RTCPeerConnection} peer */
function gathered(peer) {
  return new Promise((resolve) => {
    if (peer.iceGatheringState === "complete") resolve(undefined);
    peer.addEventListener("icegatheringstatechange", () => {
      if (peer.iceGatheringState === "complete") resolve(undefined);
    });
    setTimeout(resolve, 1000);
  });
}

/**
 * @param {RTCPeerConnection} peer
 * @param {AbortSignal} signal
 */
function connected(peer, signal) {
  return new Promise((resolve, reject) => {
    const look = () => {
      if (peer.connectionState === "connected") resolve(undefined);
      else if (["failed", "closed"].includes(peer.connectionState)) reject(new Error("no connection"));
    };
    peer.addEventListener("connectionstatechange", look);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    setTimeout(() => reject(new Error("no connection")), PATIENCE_MS);
    look();
  });
}

/**
 * Wait for the first picture for as long as there is a connection: the camera may be connecting, or the device busy.
 * @param {HTMLVideoElement} video
 * @param {MediaStream} stream
 * @param {RTCPeerConnection} peer
 * @param {AbortSignal} signal
 */
function playing(video, stream, peer, signal) {
  return new Promise((resolve, reject) => {
    peer.addEventListener("connectionstatechange", () => {
      if (["failed", "closed"].includes(peer.connectionState)) reject(new Error("no connection"));
    });
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    if (signal.aborted) throw signal.reason;
    video.srcObject = stream;
    // Asked for in words: browsers hold back what would play by itself until it is seen, and it is shown only once it plays.
    video.play().then(resolve, reject);
  });
}
