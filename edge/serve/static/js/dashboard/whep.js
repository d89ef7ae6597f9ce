// @ts-check
/** Watching a camera over WebRTC (WHEP), where the device offers it. */

const PATIENCE_MS = 12_000; // a busy device may take a while until its first picture is decoded
const DISCONNECTED_MS = 5000; // what is lost for a moment comes back by itself

/** There is no video to be had here, now or later. */
export class Never extends Error {}

/**
 * Show a camera in a video element.
 * @param {HTMLVideoElement} video
 * @param {string} camera
 * @param {() => void} lost called once when the picture ends
 * @returns {Promise<() => void>} ends it; rejects where it cannot be had: with a `Never` where it never can
 */
export async function watch(video, camera, lost) {
  if (!("RTCPeerConnection" in window)) throw new Never("This browser has no WebRTC.");
  const peer = new RTCPeerConnection();
  /** @type {string | null} */
  let session = null;
  let ended = false;
  const end = () => {
    if (ended) return;
    ended = true;
    peer.close();
    video.srcObject = null;
    if (session) fetch(session, { method: "DELETE", keepalive: true }).catch(() => undefined);
  };
  try {
    peer.addTransceiver("video", { direction: "recvonly" });
    const stream = new MediaStream();
    peer.addEventListener("track", (event) => {
      stream.addTrack(event.track);
      video.srcObject = stream;
    });
    await peer.setLocalDescription();
    await gathered(peer);
    const answer = await fetch(`/whep/${encodeURIComponent(camera)}`, {
      method: "POST",
      headers: { "Content-Type": "application/sdp" },
      body: peer.localDescription?.sdp ?? "",
    });
    if (answer.status !== 201) throw new (answer.status === 404 || answer.status === 405 ? Never : Error)(`no WHEP here (${answer.status})`);
    session = answer.headers.get("Location");
    await peer.setRemoteDescription({ type: "answer", sdp: await answer.text() });
    await playing(video);
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
  for (const track of /** @type {MediaStream} */ (video.srcObject).getTracks()) track.addEventListener("ended", over);
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

/** @param {HTMLVideoElement} video */
function playing(video) {
  return new Promise((resolve, reject) => {
    video.addEventListener("playing", () => resolve(undefined), { once: true });
    setTimeout(() => reject(new Error("no picture came")), PATIENCE_MS);
  });
}
