/** Buttons that place the camera over a surface in three dimensions. */

import { element } from '../elements.js';
import { cameraText } from '../landscape/view-state.js';
import { cameraPresets } from '../plots/camera.js';

const WORDS = { top: 'top', line: 'along the line', floor: 'valley floor' };

export class CameraButtons {
  /** @param onchoose (camera text) => void */
  constructor(onchoose) {
    this.buttons = Object.entries(WORDS).map(([name, words]) => {
      const onclick = () => onchoose(this.presets[name]);
      return [name, element('button', { type: 'button', 'data-camera': name, onclick }, words)];
    });
    this.node = element('div.control.cameras', { role: 'group', 'aria-label': 'Camera' },
      element('span.soft', {}, 'camera'), this.buttons.map(([, button]) => button));
  }

  /** @param camera the eye that is shown, or null */
  show(plane, claim, camera) {
    const eyes = cameraPresets(plane, claim?.between);
    this.presets = Object.fromEntries(Object.entries(eyes).map(([name, eye]) => [name, cameraText(eye)]));
    for (const [name, button] of this.buttons)
      button.setAttribute('aria-pressed', String(camera !== null && cameraText(camera) === this.presets[name]));
  }
}
