/** plotly.js out of the installed plotly package, loaded when the first plot needs it. */

let loading = null;

/** @returns {Promise<any>} Plotly */
export function loadPlotly() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = document.querySelector('meta[name="plotly"]').content;
    script.onload = () => resolve(globalThis.Plotly);
    script.onerror = () => {
      loading = null;
      script.remove();
      reject(new Error('plotly.js could not be loaded: is the server running?'));
    };
    document.head.append(script);
  });
  return loading;
}
