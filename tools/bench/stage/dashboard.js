// Notes when the dashboard has drawn a person's box, and when it was told of what.
(() => {
  const stage = { drawn: [], told: [] };
  const PERSON = /^person( \d+)?$/;
  window.stage = stage;
  const write = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (words, ...more) {
    write.call(this, words, ...more);
    if (this.canvas.id !== "live-boxes") return;
    // The next frame of the screen shows it; a message comes after that frame is painted.
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => stage.drawn.push([Date.now(), words]);
      port2.postMessage(0);
    });
  };
  const Source = window.EventSource;
  window.EventSource = class extends Source {
    constructor(...given) {
      super(...given);
      this.addEventListener("sight", (event) => {
        const sight = JSON.parse(event.data);
        const people = sight.in_view.filter((one) => one.label === "person");
        stage.told.push([Date.now(), 1000 * sight.captured, people.length > 0, people.map((one) => one.name).find(Boolean) ?? null]);
      });
    }
  };
  /** Since a time, ms: when a person's box was drawn, and a box with a name; and the first sight with a person. */
  stage.since = (at, name) => {
    const named = (words) => name !== null && words === name;
    const drawn = stage.drawn.filter(([time]) => time >= at);
    return {
      box: drawn.find(([, words]) => PERSON.test(words) || named(words))?.[0] ?? null,
      name: drawn.find(([, words]) => named(words))?.[0] ?? null,
      told: stage.told.find(([, captured, person]) => captured >= at && person) ?? null,
    };
  };
  /** When a person's box was drawn last, ms. */
  stage.last = (name) => stage.drawn.findLast(([, words]) => PERSON.test(words) || words === name)?.[0] ?? 0;
})();
