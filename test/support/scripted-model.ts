import type { GenerateChunk, GenerateSummary } from '../../src/runtime/generation-types.ts';
import type { ModelInfo } from '../../src/runtime/model-info.ts';
import { DEFAULT_SAMPLING } from '../../src/sampling/generate-params.ts';
import { createEchoModel, type EchoModel, pieceOf } from './echo-model.ts';

/** The output of a scripted model: text chunks, or an error to throw. */
export type Script = readonly (string | Error)[];

/** The word model in the form a server hosts. */
export function createHostedEcho(maxContext: number): EchoModel {
  const sampling = { ...DEFAULT_SAMPLING, source: 'default' } as const;
  const info = { maxContext, kernels: 'scalar', memory: { totalBytes: 0 }, sampling } as ModelInfo;
  return Object.assign(createEchoModel(maxContext), {
    modelInfo: () => info,
    onLost() {},
    isLoaded: () => true,
    dispose: async () => {},
  });
}

/** A model that returns a script; its summary can be overridden. */
export function createScriptedModel(script: Script, summary: Partial<GenerateSummary> = {}): EchoModel {
  const model = createHostedEcho(1000);
  const base = model.generateStream.bind(model);
  model.generateStream = async function* (prompt, options) {
    let last: GenerateChunk | null = null;
    for await (const chunk of base(prompt, options)) last = chunk;
    for (const piece of script) {
      if (typeof piece !== 'string') throw piece;
      yield pieceOf(piece, 1);
    }
    yield { ...(last as GenerateChunk & GenerateSummary), ...summary };
  };
  return model;
}
