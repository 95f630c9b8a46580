import { RuvLLMError } from '../core/errors.ts';

/** Preference if the user names no quantization: first the sizes most machines run well, then smaller ones, then unquantized ones. */
export const QUANT_PREFERENCE: readonly string[] = (
  'Q4_K_M Q4_0 Q8_0 Q5_K_M Q4_K_S Q6_K Q5_K_S Q5_0 Q4_1 Q5_1 IQ4_NL IQ4_XS Q4_K_L Q5_K_L Q3_K_M Q3_K_L Q3_K_S ' +
  'MXFP4_MOE MXFP4 NVFP4 Q2_K IQ3_M IQ3_S IQ3_XS IQ3_XXS IQ2_M IQ2_S IQ2_XS IQ2_XXS IQ1_M IQ1_S TQ2_0 TQ1_0 Q4_K Q5_K Q3_K F16 BF16 F32'
).split(' ');

const SPLIT = /-\d{5}-of-\d{5}\.gguf$/i;

/** False for files beside models: image projectors and calibration data. */
function isModelFile(path: string): boolean {
  const name = path.slice(path.lastIndexOf('/') + 1);
  return /\.gguf$/i.test(name) && !/mmproj|imatrix/i.test(name);
}

/** Whether this is one part of a split model. */
export function isSplitFile(path: string): boolean {
  return SPLIT.test(path);
}

/** Whether a file name contains this quantization as a whole word: Q4_K does not match Q4_K_M. */
export function matchesQuant(path: string, quant: string): boolean {
  const word = quant.replaceAll(/[.]/g, '\\.');
  return new RegExp(`(?:^|[-./])${word}(?=[-./])`, 'i').test(path.replace(SPLIT, '.gguf'));
}

/** The quantization in a file name, spelled as in `QUANT_PREFERENCE`, or null. */
export function quantOf(path: string): string | null {
  return QUANT_PREFERENCE.find((quant) => matchesQuant(path, quant)) ?? null;
}

function shortestFirst(a: string, b: string): number {
  return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
}

function formatPaths(paths: readonly string[]): string {
  const list = paths.slice(0, 12).join(', ');
  return paths.length > 12 ? `${list} and ${paths.length - 12} more` : list;
}

/** Chooses the file of a repository that the user means; the same files always give the same choice. */
export function chooseGgufFile(
  paths: readonly string[],
  request: { readonly quant: string | null; readonly file: string | null },
  where: string,
): string {
  const models = paths.filter(isModelFile).sort(shortestFirst);
  if (request.file !== null) {
    if (!paths.includes(request.file)) {
      throw new RuvLLMError('not_found', `${where} has no file ${request.file} (it has: ${formatPaths(models)})`);
    }
    return requireWhole([request.file], where);
  }
  if (models.length === 0)
    throw new RuvLLMError('not_found', `${where} has no GGUF file among its ${paths.length} files`);
  if (request.quant !== null) {
    const matching = models.filter((path) => matchesQuant(path, request.quant!));
    if (matching.length === 0) {
      throw new RuvLLMError(
        'not_found',
        `${where} has no GGUF file for ${request.quant} (it has: ${formatPaths(models)})`,
      );
    }
    return requireWhole(matching, where);
  }
  const whole = models.filter((path) => !isSplitFile(path));
  for (const quant of QUANT_PREFERENCE) {
    const match = whole.find((path) => matchesQuant(path, quant));
    if (match !== undefined) return match;
  }
  if (whole.length > 1) {
    throw new RuvLLMError('invalid_option', `${where} has ${whole.length} models; choose one: ${formatPaths(whole)}`);
  }
  return requireWhole(models, where);
}

function requireWhole(candidates: readonly string[], where: string): string {
  const whole = candidates.find((path) => !isSplitFile(path));
  if (whole !== undefined) return whole;
  throw new RuvLLMError(
    'unsupported',
    `${where}: ${candidates[0]} is one part of a split model; split models are not supported yet`,
  );
}
