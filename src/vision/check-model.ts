import { RuvLLMError } from '../core/errors.ts';
import type { VisionShape } from './vision-shape.ts';

/** The language model that a projector must fit. */
export interface LanguageModel {
  readonly embeddingDim: number;
  /** Id of a token by its spelling; null: none. */
  idOf(spelling: string): number | null;
}

/** Rejects the projector of another model. */
export function checkProjector({ outputDim, family }: VisionShape, model: LanguageModel): void {
  if (outputDim !== model.embeddingDim) {
    const message = `the projector is of another model: its rows have ${outputDim} values, the model's have ${model.embeddingDim}`;
    throw new RuvLLMError('invalid_option', message, {
      data: { option: 'mmproj', projectorDim: outputDim, embeddingDim: model.embeddingDim },
    });
  }
  const { before, placeholder, after } = family;
  const missing = `${before}${placeholder}${after}`.match(/<[^<>]+>/g)!.filter((token) => model.idOf(token) === null);
  if (missing.length === 0) return;
  const names = [...new Set(missing)];
  const message = `the model's vocabulary has no ${names.join(', ')}, which prompts with images of type ${family.name} require`;
  throw new RuvLLMError('invalid_option', message, { data: { option: 'mmproj', missing: names } });
}
