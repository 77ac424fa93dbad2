"use strict";
const figures = JSON.parse(document.getElementById("figures").textContent);
const config = JSON.parse(document.getElementById("config").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const narrow = 480;
const tallest = 580;

// On a narrow page the colour bar lies above the frame, so that the frame has the whole width.
const barAbove = { orientation: "h", x: 0.5, xanchor: "center", y: 1, yanchor: "bottom", len: 1, thickness: 8, xpad: 0, ypad: 6, tickangle: 0 };

// Labels of a lying bar are wider than their distance: those that would run into the last one are left out.
function spaced({ zmin, zmax, colorbar }) {
  const last = colorbar.tickvals.length - 1;
  const clear = (place) => colorbar.tickvals[last] - place > 0.2 * (zmax - zmin);
  const kept = colorbar.tickvals.map((place, index) => index === last || clear(place));
  const pick = (list) => list.filter((_, index) => kept[index]);
  return { tickvals: pick(colorbar.tickvals), ticktext: pick(colorbar.ticktext) };
}

function narrowed({ data, layout }) {
  const [surface, ...rest] = data;
  const { margin, scene } = layout;
  if (scene) {
    const eye = Object.fromEntries(Object.entries(scene.camera.eye).map(([axis, place]) => [axis, 1.3 * place]));
    const camera = { ...scene.camera, eye };
    return { data: [{ ...surface, showscale: false }, ...rest], layout: { ...layout, scene: { ...scene, camera } } };
  }
  if (!surface.colorbar) return { data, layout };
  const lying = { ...surface, colorbar: { ...surface.colorbar, ...barAbove, ...spaced(surface) } };
  return { data: [lying, ...rest], layout: { ...layout, margin: { ...margin, r: 26, t: 64 } } };
}

// A plane has equal units on both axes: its frame is given, and the plot is as large as the frame and its margins.
function size(plot, room, { margin, scene }) {
  const shape = Number(plot.dataset.shape);
  const height = Number(plot.dataset.height);
  if (scene) return { width: room, height: Math.min(height, room) };
  // The legend of the profile needs a line for each path where the page is narrow.
  if (!shape) return { width: room, height: room < narrow && plot.id === "plot-profile" ? height + 100 : height };
  const across = margin.l + margin.r;
  const up = margin.t + margin.b;
  const frame = Math.min(room - across, (tallest - up) / shape);
  return { width: Math.round(frame + across), height: Math.round(frame * shape + up) };
}

function draw(theme) {
  for (const plot of document.querySelectorAll(".plot")) {
    plot.style.width = "100%";
    const room = plot.clientWidth;
    const { data, layouts } = figures[plot.id];
    const wide = { data, layout: layouts[theme ?? (dark.matches ? "dark" : "light")] };
    const shown = room < narrow ? narrowed(wide) : wide;
    const { width, height } = size(plot, room, shown.layout);
    plot.style.width = `${width}px`;
    plot.style.height = `${height}px`;
    Plotly.react(plot, shown.data, { ...shown.layout, width, height, autosize: false }, config);
  }
}

let waiting;
let lastWidth = 0;
new ResizeObserver(([entry]) => {
  const width = Math.round(entry.contentRect.width);
  if (width === lastWidth) return;
  lastWidth = width;
  clearTimeout(waiting);
  waiting = setTimeout(draw, 60);
}).observe(document.querySelector("main"));

dark.addEventListener("change", () => draw());

// Plots do not shrink with the sheet: for print the page is laid out at one width, which the style sheet scales to paper.
window.addEventListener("beforeprint", () => {
  document.body.classList.add("sheet");
  draw("light");
});
window.addEventListener("afterprint", () => {
  document.body.classList.remove("sheet");
  draw();
});
