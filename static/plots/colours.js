// Colours of surfaces and of whole experiments; those of minima are the page's own.

export { coloursOf } from '../colours.js';

/** Perceptually uniform maps: equal steps of the value look equally large. */
export const MAPS = { loss: 'Viridis', error: 'Cividis' };

/** Colours of experiments that are compared: first those that no minimum has by its name. */
export const EXPERIMENTS = ['#CC79A7', '#E69F00', '#56B4E9', '#7F7F7F', '#0072B2', '#D55E00', '#009E73'];
