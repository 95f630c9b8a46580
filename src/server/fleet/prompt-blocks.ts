/** Names the blocks of a prompt to the gateway that sent it. Gateways do not pass it on. */
export const PROMPT_BLOCKS_HEADER = 'x-ruvllm-fleet-prompt';

/** Node's clients accept 16 KiB of headers; 256 hashes take 4.3 KiB. */
const MAX_HASHES = 256;

/** Every `stride`-th block of a prompt of `numBlocks` whole blocks. */
export interface PromptBlocks {
  readonly numBlocks: number;
  readonly stride: number;
  readonly hashes: readonly string[];
}

/** `<blocks>;<stride>;<hash>,<hash>…`: the hashes of every `stride`-th block, the last one of each stride. */
export function writePromptBlocks(blocks: readonly string[]): string {
  const stride = Math.max(1, Math.ceil(blocks.length / MAX_HASHES));
  return `${blocks.length};${stride};${blocks.filter((_, index) => (index + 1) % stride === 0).join(',')}`;
}

/** Null: missing or malformed. */
export function readPromptBlocks(text: string | undefined): PromptBlocks | null {
  const match = /^(\d{1,7});(\d{1,5});((?:[0-9a-f]{16}(?:,|$))*)$/.exec(text ?? '');
  if (match === null) return null;
  const [numBlocks, stride] = [Number(match[1]), Number(match[2])];
  const hashes = match[3] === '' ? [] : match[3]!.split(',');
  return stride > 0 && hashes.length === Math.floor(numBlocks / stride) ? { numBlocks, stride, hashes } : null;
}
