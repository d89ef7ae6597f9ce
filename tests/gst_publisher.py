"""Publishes with GStreamer's WebRTC (webrtcbin, libnice), for the system's Python: gst_publisher.py URL KEY SECONDS.

It runs with the interpreter that Debian's bindings are for, and so imports nothing of this project. Debian 12 has neither
`whipclientsink` nor a WHIP client that starts (its `simple-whip-client` brings two versions of libsoup together), so the
one request that WHIP is stands here; the whole of WebRTC is GStreamer's.
"""

import sys
import urllib.parse
import urllib.request

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstSdp", "1.0")
gi.require_version("GstWebRTC", "1.0")
from gi.repository import GLib, Gst, GstSdp, GstWebRTC  # noqa: E402

CONNECTED = GstWebRTC.WebRTCPeerConnectionState.CONNECTED
PIPELINE = """
webrtcbin name=peer bundle-policy=max-bundle
videotestsrc is-live=true pattern=smpte ! video/x-raw,width=320,height=240,framerate=25/1 ! videoconvert
 ! x264enc tune=zerolatency speed-preset=ultrafast key-int-max=25 ! video/x-h264,profile=constrained-baseline
 ! rtph264pay config-interval=-1 aggregate-mode=zero-latency
 ! application/x-rtp,media=video,encoding-name=H264,payload=96 ! peer.
audiotestsrc is-live=true freq=440 ! audioconvert ! audioresample ! opusenc ! rtpopuspay
 ! application/x-rtp,media=audio,encoding-name=OPUS,payload=97 ! peer.
"""


class Publisher:
    """One session."""

    def __init__(self, url, key):
        self.url, self.key, self.location = url, key, None
        self.pipeline = Gst.parse_launch(PIPELINE)
        self.peer = self.pipeline.get_by_name("peer")
        self.peer.connect("on-negotiation-needed", self.negotiate)
        self.peer.connect("notify::ice-gathering-state", self.gathered)
        self.pipeline.set_state(Gst.State.PLAYING)
        number = 0
        while (one := self.peer.emit("get-transceiver", number)) is not None:
            one.set_property("direction", GstWebRTC.WebRTCRTPTransceiverDirection.SENDONLY)
            number += 1

    def negotiate(self, _peer):
        def made(promise):
            promise.wait()
            reply = promise.get_reply()  # it owns the offer: the bindings keep no reference
            offer = reply.get_value("offer")
            self.peer.emit("set-local-description", offer, Gst.Promise.new())

        self.peer.emit("create-offer", None, Gst.Promise.new_with_change_func(made))

    def gathered(self, *_):
        if self.peer.get_property("ice-gathering-state") == GstWebRTC.WebRTCICEGatheringState.COMPLETE:
            GLib.idle_add(self.post)

    def request(self, method, url, body=None):
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/sdp"}
        return urllib.request.urlopen(urllib.request.Request(url, body, headers, method=method), timeout=10)

    def post(self):
        offer = self.peer.get_property("local-description").sdp.as_text()
        with self.request("POST", self.url, offer.encode()) as answer:
            self.location = answer.headers["Location"]
            _, sdp = GstSdp.sdp_message_new_from_text(answer.read().decode())
        description = GstWebRTC.WebRTCSessionDescription.new(GstWebRTC.WebRTCSDPType.ANSWER, sdp)
        self.peer.emit("set-remote-description", description, Gst.Promise.new())
        return False

    def end(self):
        if self.location is not None and self.peer.get_property("connection-state") == CONNECTED:
            self.request("DELETE", urllib.parse.urljoin(self.url, self.location)).close()
        self.pipeline.set_state(Gst.State.NULL)


def main(url, key, seconds):
    """Publish for some seconds, and say good-bye."""
    Gst.init(None)
    publisher = Publisher(url, key)
    loop = GLib.MainLoop()
    GLib.timeout_add(int(float(seconds) * 1000), loop.quit)
    loop.run()
    publisher.end()


if __name__ == "__main__":
    main(*sys.argv[1:])
