/** The style of the views that show pictures, loaded with the first of them. */

let loading = null;

export function loadStyle() {
  loading ??= new Promise((resolve) => {
    const link = document.createElement('link');
    link.rel = 'stylesheet';
    link.href = new URL('../plots.css', import.meta.url).href;
    link.onload = resolve;
    link.onerror = resolve;
    document.head.append(link);
  });
  return loading;
}
