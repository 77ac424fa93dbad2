/** What an experiment is doing, in words. */
export const STAGES = {
  minima: 'training the minima',
  curves: 'fitting the curves',
  surfaces: 'computing the surfaces',
  profiles: 'measuring the paths',
  verdict: 'judging',
};
