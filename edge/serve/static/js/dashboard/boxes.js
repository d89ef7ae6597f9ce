// @ts-check
/** Boxes with names over a picture. */

/** @typedef {{ label: string, title: string | null, box: number[] }} Drawn box as fractions of the picture */

const KNOWN = "#34d399";
const PERSON = "#fbbf24";
const THING = "#7dd3fc";

/**
 * Draw boxes on a canvas that covers a picture which is shown whole in the middle (object-fit: contain).
 * @param {HTMLCanvasElement} canvas
 * @param {number} width px of the picture
 * @param {number} height px of the picture
 * @param {Drawn[]} boxes
 */
export function draw(canvas, width, height, boxes) {
  const ratio = window.devicePixelRatio || 1;
  const wide = canvas.clientWidth;
  const high = canvas.clientHeight;
  canvas.width = Math.round(wide * ratio);
  canvas.height = Math.round(high * ratio);
  const pen = canvas.getContext("2d");
  if (!pen || !width || !height) return;
  pen.scale(ratio, ratio);
  const scale = Math.min(wide / width, high / height);
  const [left, top] = [(wide - width * scale) / 2, (high - height * scale) / 2];
  pen.font = "600 12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  for (const { label, title, box } of boxes) {
    const colour = title ? KNOWN : label === "person" ? PERSON : THING;
    const x = left + box[0] * width * scale;
    const y = top + box[1] * height * scale;
    const w = (box[2] - box[0]) * width * scale;
    const h = (box[3] - box[1]) * height * scale;
    pen.lineWidth = 2;
    pen.strokeStyle = colour;
    pen.beginPath();
    pen.roundRect(x, y, w, h, 6);
    pen.stroke();
    const words = title ?? label;
    const across = pen.measureText(words).width + 12;
    const at = Math.max(0, Math.min(x, wide - across));
    const up = y >= 20 ? y - 20 : y + 2;
    pen.fillStyle = colour;
    pen.beginPath();
    pen.roundRect(at, up, across, 18, 5);
    pen.fill();
    pen.fillStyle = "#06231f";
    pen.fillText(words, at + 6, up + 9.5);
  }
}
