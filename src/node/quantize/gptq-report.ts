import { RuvLLMError } from '../../core/errors.ts';
import { checkProductBytes } from '../../gguf/requantize/gptq/input-products.ts';
import { hasLevels } from '../../gguf/requantize/gptq/round-rows.ts';
import type { RequantizedTensor } from '../../gguf/requantize/requantize.ts';
import type { InputGroup } from './input-groups.ts';

/** The tensors that `--method gptq` rounded, and those that it could not. */
export interface GptqReport {
  readonly numTokens: number;
  /** Runs of the text through the model. */
  readonly numPasses: number;
  readonly tensors: readonly string[];
  /** Rounded with weights where their inputs are visible, or plainly. */
  readonly others: readonly { readonly tensor: string; readonly reason: string }[];
}

/** Throws unless some matrix of a plan can be rounded column by column, and the input products of all that can fit. */
export function checkGptqPlan(plan: readonly RequantizedTensor[]): void {
  const rounded = plan.filter(isRounded);
  const capable = rounded.filter(({ type }) => hasLevels(type));
  for (const { tensor } of capable) checkProductBytes(tensor.dims[0]!, tensor.name);
  if (capable.length > 0) return;
  const types = [...new Set(rounded.map(({ type }) => type))].join(', ');
  throw new RuvLLMError(
    'invalid_option',
    `--method gptq has no effect: ${types === '' ? 'no tensor changes its type' : `values of ${types} are not rounded one by one`}; use --method round`,
    { data: { types } },
  );
}

const isRounded = ({ tensor, type }: RequantizedTensor): boolean => type !== tensor.type;

/**
 * Throws unless the text has as many tokens as the widest matrix has columns: corrections for fewer fit the text, not the model. On
 * stories15M, 256 tokens for 288 to 768 columns gave a larger divergence than plain rounding.
 */
export function checkNumTokens(numTokens: number, entries: readonly RequantizedTensor[]): void {
  const widest = entries.toSorted((a, b) => b.tensor.dims[0]! - a.tensor.dims[0]!)[0]?.tensor;
  if (widest === undefined || numTokens >= widest.dims[0]!) return;
  throw new RuvLLMError(
    'invalid_option',
    `--method gptq: the calibration text has ${numTokens} tokens, ${widest.name} needs at least its ${widest.dims[0]} ` +
      'columns; use a longer text or a higher --calibration-tokens',
    { data: { numTokens, tensor: widest.name, numCols: widest.dims[0]! } },
  );
}

/** The report of a plan: `unused` counts the matrices of a tensor that were rounded with weights. */
export function describeTensors(
  plan: readonly RequantizedTensor[],
  targets: ReadonlyMap<string, RequantizedTensor>,
  groups: readonly InputGroup[],
  unused: ReadonlyMap<string, number>,
): Pick<GptqReport, 'tensors' | 'others'> {
  const tensors: string[] = [];
  const others: { tensor: string; reason: string }[] = [];
  for (const { tensor, type } of plan.filter(isRounded)) {
    const numUnused = unused.get(tensor.name) ?? 0;
    const numMatrices = tensor.dims[2] ?? 1;
    const isVisible = groups.some(({ names }) => names.includes(tensor.name));
    if (numUnused > 0) {
      const reason =
        numMatrices === 1
          ? 'all its inputs are zero'
          : `${numUnused} of ${numMatrices} experts have fewer inputs than columns`;
      others.push({ tensor: tensor.name, reason });
    } else if (targets.has(tensor.name)) tensors.push(tensor.name);
    else if (!hasLevels(type))
      others.push({ tensor: tensor.name, reason: `values of ${type} are not rounded one by one` });
    else
      others.push({
        tensor: tensor.name,
        reason: isVisible ? 'its inputs have another shape' : 'its inputs are not visible',
      });
  }
  return { tensors, others };
}
