"""A real RTSP server of other hands (GStreamer's), for the system's Python: rtsp_server.py ADDRESS PORT.

It runs with the interpreter that Debian's bindings are for, and so imports nothing of this project.
"""

import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer  # noqa: E402


def main(address: str, port: str) -> None:
    """Serve a moving test picture at rtsp://ADDRESS:PORT/live."""
    Gst.init(None)
    server = GstRtspServer.RTSPServer.new()
    server.set_address(address)
    server.set_service(port)
    factory = GstRtspServer.RTSPMediaFactory.new()
    factory.set_launch(
        "( videotestsrc is-live=true pattern=ball ! video/x-raw,width=320,height=240,framerate=15/1"
        " ! x264enc tune=zerolatency speed-preset=ultrafast key-int-max=15 ! rtph264pay name=pay0 pt=96 )"
    )
    factory.set_shared(True)
    server.get_mount_points().add_factory("/live", factory)
    server.attach(None)
    print("listening", flush=True)
    GLib.MainLoop().run()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
