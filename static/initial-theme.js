// Sets the theme before the first paint, so the page does not flash in the other one.
(() => {
  let chosen = null;
  try { chosen = localStorage.getItem('valley-theme'); } catch { /* storage is off: use the system's theme */ }
  const dark = chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
})();
