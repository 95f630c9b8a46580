import type { Architecture } from './architecture.ts';
import { openGemma } from './gemma2.ts';
import { readNumber, readSoftcap, readWindow, readWindowedLayers } from './metadata-keys.ts';
import { plainRope, readRope } from './rope.ts';

/** Gemma 3 (text): of every six layers, five have a window and their own rope; heads are normalized. */
export const gemma3: Architecture = {
  name: 'gemma3',
  isCausal: true,
  open(file) {
    const window = readWindow(file, 0);
    const global = readRope(file, 'halves');
    return openGemma(file, {
      numLayersOf27B: 62,
      window,
      windowedLayers: window > 0 ? readWindowedLayers(file, 6) : [],
      ropes: [global, plainRope(global.rotaryDim, readNumber(file, 'rope.freq_base_swa', 10000), 'halves')],
      headNorms: 'each',
      attentionSoftcap: 0,
      logitSoftcap: readSoftcap(file, 'final_logit_softcapping', 0),
    });
  },
};
