import type { EmbedderName } from '../../platform/node/memory/open-memory.ts';
import type { CommandContext } from '../command.ts';
import type { Flag } from '../flags.ts';
import { usageError } from '../usage-error.ts';

const NAME = '--memory-embedder';
const VARIABLE = 'RUVLLM_MEMORY_EMBEDDER';

export const EMBEDDER_FLAG: Flag = {
  name: NAME,
  value: 'static|model|MODEL',
  variable: VARIABLE,
  description: `what makes vectors of texts: the model's token rows, the model, or another model that is run, best a sentence encoder; default static (${VARIABLE})`,
};

/** What was wished for, by flag or variable. */
export interface EmbedderWish {
  readonly embedder: EmbedderName;
  /** Another model than the command's own. */
  readonly reference: string | null;
  readonly isGiven: boolean;
}

/** A file or a repository, as models are named: a misspelt `static` is neither. */
const REFERENCE = /[/\\:]|\.gguf$/i;

export function readEmbedderWish({ values, io }: Pick<CommandContext, 'values' | 'io'>): EmbedderWish {
  const typed = values[NAME] as string | undefined;
  const text = typed ?? io.environment[VARIABLE] ?? '';
  if (text === '' && typed === undefined) return { embedder: 'static', reference: null, isGiven: false };
  if (text === 'static' || text === 'model') return { embedder: text, reference: null, isGiven: true };
  if (REFERENCE.test(text)) return { embedder: 'model', reference: text, isGiven: true };
  const name = typed === undefined ? VARIABLE : NAME;
  throw usageError(`${name} must be static, model or the file or name of a model, got ${JSON.stringify(text)}`, name);
}
