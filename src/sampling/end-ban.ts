import type { SamplerStep } from './step.ts';

/** Keeps a text from ending before its minimum length. */
export const END_BAN: SamplerStep = {
  name: 'end-ban',
  kind: 'shape',
  isActive: ({ endBan }) => endBan !== undefined,
  names: ({ endBan }, history) => (history.length < endBan!.length ? endBan!.ids : []),
  apply({ values }, { endBan }, history) {
    if (history.length >= endBan!.length) return;
    for (const id of endBan!.ids) values[id] = -Infinity;
  },
};
