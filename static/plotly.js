/** plotly.js out of the installed plotly package, loaded when the first plot needs it. */

let loading = null;

/** @returns {Promise<any>} Plotly */
export function loadPlotly() {
  loading ??= new Promise((resolve, reject) => {
    keepCanvasesReadable();
    const script = document.createElement('script');
    script.src = document.querySelector('meta[name="plotly"]').content;
    script.onload = () => resolve(globalThis.Plotly);
    script.onerror = () => {
      loading = null;
      script.remove();
      reject(new Error('plotly.js could not be loaded. Check that the server is running, then reload the page.'));
    };
    document.head.append(script);
  });
  return loading;
}

/**
 * Flat canvases live in memory instead of on the graphics card: all that plotly.js draws on one is read back at once
 * (letters of a scene, cells of a heatmap), which is slow from a card, and browsers warn of it.
 */
function keepCanvasesReadable() {
  const { getContext } = HTMLCanvasElement.prototype;
  HTMLCanvasElement.prototype.getContext = function readable(kind, options) {
    return getContext.call(this, kind, kind === '2d' ? { willReadFrequently: true, ...options } : options);
  };
}
