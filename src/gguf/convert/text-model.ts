import type { TensorRename } from './checkpoint-tensors.ts';
import { isJsonObject, type Json } from './hf-config.ts';
import type { HfFamily } from './hf-family.ts';

/** Tables in older checkpoints, which every runtime computes itself. */
const TABLES = /\.rotary_emb\.inv_freq$/;
/** Parts of models that also see or hear. */
const OTHER_PARTS =
  /(^|\.)(vision_tower|vision_model|visual|audio_tower|embed_vision|embed_audio|multi_modal_projector|connector)\./;

/** The settings of the text model: those of a model that also sees or hears are in `text_config`. */
export function readTextConfig(config: Json): Json {
  const text = config['text_config'];
  return isJsonObject(text) ? { ...config, ...text } : config;
}

/** Omits tensors that the text model does not have, and gives the others the names of a model that only has text. */
export function renameTensors(family: HfFamily, config: Json, numLayers: number): TensorRename {
  const hasOtherParts = isJsonObject(config['text_config']);
  return (original) => {
    if (TABLES.test(original) || family.ignored?.test(original)) return null;
    if (hasOtherParts && OTHER_PARTS.test(original)) return null;
    const name = hasOtherParts ? original.replace(/(^|\.)(language_model|text_model)\./, '$1') : original;
    const layer = /^model\.layers\.(\d+)\./.exec(name)?.[1];
    return family.hasGuessingLayers === true && Number(layer ?? 0) >= numLayers ? null : name;
  };
}
