import type { ModelFileFacts } from '../../model-library.ts';

/** As Ollama writes numbers of parameters: `1.1B`, `134.52M`. */
export function writeParameterSize(count: number): string {
  if (count >= 1e9) return `${(count / 1e9).toFixed(1)}B`;
  return count >= 1e6 ? `${(count / 1e6).toFixed(2)}M` : `${(count / 1e3).toFixed(2)}K`;
}

/** The field `details` of a model. */
export function writeDetails(facts: ModelFileFacts | null, parent = ''): object {
  const family = facts?.architecture ?? 'unknown';
  return {
    parent_model: parent,
    format: 'gguf',
    family,
    families: [family],
    parameter_size: facts === null ? '' : writeParameterSize(facts.numParameters),
    quantization_level: facts?.quantization ?? 'unknown',
  };
}

/** Features of a model that clients look for. */
export async function capabilitiesOf({ canGenerate, template }: ModelFileFacts): Promise<string[]> {
  if (!(await canGenerate())) return ['embedding'];
  const isThinking = /enable_thinking|<think>|reasoning_effort/.test(template ?? '');
  return ['completion', ...(template === null ? [] : ['tools']), ...(isThinking ? ['thinking'] : [])];
}
