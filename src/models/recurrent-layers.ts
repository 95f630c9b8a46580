import { RuvLLMError } from '../core/errors.ts';
import type { StateRows } from '../kernels/contract.ts';
import type { DecoderStep } from './decoder-step.ts';
import type { ModelFile } from './types.ts';

/** The place of a layer among those of its kind: KV pages count layers with attention, states the others. */
export interface LayerPlace {
  readonly isRecurrent: boolean;
  readonly index: number;
}

/** The places of all layers; throws if none has attention. */
export function readLayerPlaces({ shape }: ModelFile): readonly LayerPlace[] {
  const { architecture, numLayers, numKvLayers, recurrentLayers = [] } = shape;
  const counts = { true: 0, false: 0 };
  const places = Array.from({ length: numLayers }, (_, layer) => {
    const isRecurrent = recurrentLayers.includes(layer);
    return { isRecurrent, index: counts[`${isRecurrent}`]++ };
  });
  // Pages without keys would have no bytes, and sequences no place in the cache.
  if (numKvLayers === 0) {
    const message = `${architecture}: none of ${numLayers} layers has attention, which is not supported`;
    throw new RuvLLMError('unsupported', message, { data: { architecture, numLayers } });
  }
  return places;
}

/** The rows and states of a step for the part of the state at `partOffset`. */
export function stateRows({ states, buffers, numSequences }: DecoderStep, partOffset: number): StateRows {
  const { sequences, stateTable } = buffers;
  return { states: states!, partOffset, sequences, stateTable, numSequences };
}
