// Stands in for the camera of the phone page: a canvas on which somebody appears at moments that this script stamps.
(() => {
  const stage = { shown: 0, scene: "empty", pictures: {}, pending: null };
  window.stage = stage;
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [640, 480];
  const pen = canvas.getContext("2d");
  let number = 0;

  function draw() {
    const { room, person, noise } = stage.pictures;
    if (!room) return;
    number += 1;
    const [dx, dy] = [2 * Math.sin(number / 40), 2 * Math.cos(number / 55)]; // a hand that holds a phone
    if (stage.scene === "whole") pen.drawImage(person, -20 + dx, -100 + dy, 680, 680);
    else {
      pen.drawImage(room, -8 + dx, -8 + dy, 656, 496);
      if (stage.scene === "beside") pen.drawImage(person, 440 + dx, 290 + dy, 180, 180);
    }
    pen.globalAlpha = 0.06; // and the noise of its sensor
    pen.drawImage(noise, -((number * 37) % 64), -((number * 53) % 64));
    pen.globalAlpha = 1;
    if (stage.pending) {
      stage.pending(Date.now());
      stage.pending = null;
    }
  }

  /** Change what the camera sees; resolves with when the first such picture was drawn, ms. */
  stage.show = (scene) => new Promise((resolve) => {
    stage.scene = scene;
    stage.pending = resolve;
  });

  stage.load = async (urls) => {
    const pictures = {};
    for (const [name, url] of Object.entries(urls)) {
      const image = new Image();
      image.src = url;
      await image.decode();
      pictures[name] = image;
    }
    const noise = document.createElement("canvas");
    [noise.width, noise.height] = [704, 544];
    const grain = noise.getContext("2d");
    const data = grain.createImageData(704, 544);
    for (let at = 0; at < data.data.length; at += 4) {
      data.data[at] = data.data[at + 1] = data.data[at + 2] = 255 * Math.random();
      data.data[at + 3] = 255;
    }
    grain.putImageData(data, 0, 0);
    stage.pictures = { ...pictures, noise };
    setInterval(draw, 1000 / 30);
  };

  const devices = navigator.mediaDevices;
  const own = devices.getUserMedia.bind(devices);
  devices.getUserMedia = async (wanted) => {
    const sound = await own({ audio: wanted.audio });
    return new MediaStream([...canvas.captureStream(30).getVideoTracks(), ...sound.getAudioTracks()]);
  };
})();
