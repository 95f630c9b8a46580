/** Facts about a model file that its display name is made of. */
export interface DisplayNameFacts {
  /** `general.name` of the file; null: none. */
  readonly name: string | null;
  /** Name or path of the file. */
  readonly file: string;
  readonly numParameters: number;
  /** The type of most weights, used where the file name has none. */
  readonly quantization: string | null;
  readonly hasChatTemplate: boolean;
}

/** How families spell themselves. */
const FAMILIES: Readonly<Record<string, string>> = {
  tinyllama: 'TinyLlama',
  smollm: 'SmolLM',
  smollm2: 'SmolLM2',
  llama: 'Llama',
  qwen: 'Qwen',
  gemma: 'Gemma',
  phi: 'Phi',
  mistral: 'Mistral',
  deepseek: 'DeepSeek',
  minilm: 'MiniLM',
  bge: 'BGE',
};
/** Names that conversion scripts take from a folder. */
const MEANINGLESS =
  /^(?:storage|models?|snapshots?|outputs?|checkpoint|merged|tmp|data|content|workspace|hf|gguf|default)$/i;
/** Longer names are cut: one file had a paragraph. */
const MAX_LENGTH = 60;
const SIZE = /^\d+(?:\.\d+)?[bmk]$/i;
const QUANT = /^(?:i?q\d\w*|tq\d\w*|mxfp4|nvfp4|[bf]?f(?:16|32)|fp(?:16|32))$/i;
const QUANT_IN_FILE = /(?:^|[-._])(i?q\d(?:_[0-9a-z]+)*|tq\d_0|mxfp4|nvfp4|bf16|f16|f32)(?=[-.]|$)/i;

const formatSize = (count: number): string =>
  count >= 1e9
    ? `${(count / 1e9).toFixed(1)}B`
    : count >= 1e6
      ? `${Math.round(count / 1e6)}M`
      : `${Math.round(count / 1e3)}K`;

function spell(word: string): string {
  const [, letters, rest] = /^([a-z]+)([\d.]*)$/i.exec(word) ?? [];
  const whole = FAMILIES[word.toLowerCase()];
  if (whole !== undefined) return whole;
  if (letters !== undefined && Object.hasOwn(FAMILIES, letters.toLowerCase())) {
    return `${FAMILIES[letters.toLowerCase()]!}${rest}`;
  }
  if (SIZE.test(word) || word.toLowerCase() === 'it') return word.toUpperCase();
  return /^[a-z]+$/.test(word) ? word[0]!.toUpperCase() + word.slice(1) : word;
}

const isFamily = (word: string): boolean => {
  const letters = /^[a-z]+/i.exec(word)?.[0].toLowerCase() ?? '';
  return Object.hasOwn(FAMILIES, word.toLowerCase()) || Object.hasOwn(FAMILIES, letters);
};

/** Words of a file or package name, from the family on, without quantization. */
function wordsOf(text: string): string[] {
  const base = text
    .split(/[\\/]/)
    .at(-1)!
    .replace(/@[\d.]+$/, '')
    .replace(/\.gguf$/i, '')
    .replace(QUANT_IN_FILE, '');
  const words = base.split(/[-_\s]+/).filter((word) => word !== '' && !QUANT.test(word));
  const family = words.findLastIndex(isFamily);
  return family < 0 ? words : words.slice(family);
}

/** A short name for people: `TinyLlama 1.1B Chat IQ2_XXS`. */
export function displayNameOf({ name, file, numParameters, quantization, hasChatTemplate }: DisplayNameFacts): string {
  const isUsable = name !== null && name.trim() !== '' && !MEANINGLESS.test(name.trim());
  const hasOwnSpelling = isUsable && /[A-Z]/.test(name) && !/[/_@]/.test(name);
  const words = hasOwnSpelling ? name.trim().split(/[-\s]+/) : wordsOf(isUsable ? name : file).map(spell);
  const isSized = words.some((word) => /\d[bmk]$/i.test(word) && /\d/.test(word));
  if (!isUsable) {
    // Sizes in file names are rounded.
    const size = words.findIndex((word) => SIZE.test(word));
    if (size >= 0) words[size] = formatSize(numParameters);
    if (hasChatTemplate && !words.some((word) => /^(?:chat|instruct|it)$/i.test(word))) words.push('Chat');
  }
  if (!isSized && numParameters > 0) words.push(formatSize(numParameters));
  const quant = QUANT_IN_FILE.exec(file.split(/[\\/]/).at(-1)!)?.[1]?.toUpperCase() ?? quantization;
  return [words.join(' ').slice(0, MAX_LENGTH), ...(quant === null ? [] : [quant])].join(' ');
}
