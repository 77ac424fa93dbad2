// What all figures share: type, inks, axes and the options for plotly.js; the same as landscape/figures/theme.py.

export const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";

/** What a standing colour bar needs with its widest labels; profiles leave it, too, so that their frames align. */
export const BAR_ROOM = 88;

/** A dark outline that makes white lines legible on bright colours. */
export const OUTLINE = 'rgba(12,14,18,0.75)';

export const CONFIG = {
  displaylogo: false,
  showSendToCloud: false,
  plotlyServerURL: '',
  responsive: false,
  doubleClick: false,
  displayModeBar: false,
  scrollZoom: false,
};

const INKS = {
  light: {
    text: '#1f2328',
    muted: '#59636e',
    grid: '#e7eaee',
    axis: '#8d96a0',
    panel: '#ffffff',
    pill: 'rgba(255,255,255,0.88)',
    empty: '#eceef1',
    hatch: '#cfd4da',
  },
  dark: {
    text: '#e6e9ed',
    muted: '#9da7b3',
    grid: '#2b323b',
    axis: '#68727e',
    panel: '#12161b',
    pill: 'rgba(18,22,27,0.82)',
    empty: '#20262d',
    hatch: '#363e48',
  },
};

export function inks(mode) {
  return INKS[mode] ?? INKS.light;
}

/** The layout every figure starts from. */
export function baseLayout(mode) {
  const ink = inks(mode);
  return {
    font: { family: FONT, size: 12, color: ink.text },
    paper_bgcolor: 'rgba(0,0,0,0)',
    plot_bgcolor: 'rgba(0,0,0,0)',
    margin: { l: 56, r: 16, t: 12, b: 48 },
    showlegend: false,
    hoverlabel: {
      bgcolor: ink.panel,
      bordercolor: ink.axis,
      font: { family: FONT, size: 12, color: ink.text },
      align: 'left',
    },
    legend: { font: { size: 11, color: ink.text }, bgcolor: 'rgba(0,0,0,0)' },
    dragmode: 'zoom',
  };
}

/** A flat axis in the house style. */
export function axis(mode, title, more = {}) {
  const ink = inks(mode);
  return {
    gridcolor: ink.grid,
    linecolor: ink.axis,
    tickcolor: ink.axis,
    ticks: 'outside',
    ticklen: 4,
    tickfont: { size: 11, color: ink.muted },
    title: { text: title, standoff: 8, font: { size: 12, color: ink.muted } },
    zeroline: false,
    showline: true,
    automargin: true,
    ...more,
  };
}

/** Ticks of a logarithmic axis: powers of ten, or what plotly chooses where hardly one of them would be seen. */
export function logTicks(lists) {
  let [low, high] = [Infinity, 0];
  for (const list of lists) {
    for (const value of list) {
      if (value > 0 && value < low) low = value;
      if (value > high && value < Infinity) high = value;
    }
  }
  return high >= 20 * low ? { dtick: 1 } : { nticks: 6 };
}

/** An axis of a scene. */
export function sceneAxis(mode, title, more = {}) {
  const ink = inks(mode);
  return {
    showbackground: false,
    gridcolor: ink.grid,
    linecolor: ink.axis,
    tickfont: { size: 10, color: ink.muted },
    title: { text: title, font: { size: 11, color: ink.muted } },
    zeroline: false,
    showspikes: false,
    ...more,
  };
}
