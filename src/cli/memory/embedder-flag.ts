import type { EmbedderName } from '../../node/memory/open-memory.ts';
import type { Flag, FlagValues } from '../flags.ts';
import type { CliIo } from '../io.ts';
import { usageError } from '../usage-error.ts';

const NAME = '--memory-embedder';
const VARIABLE = 'RUVLLM_MEMORY_EMBEDDER';

export const EMBEDDER_FLAG: Flag = {
  name: NAME,
  value: 'encoder|static|model|MODEL',
  variable: VARIABLE,
  description: `embedder: a sentence encoder (encoder, downloaded once), token embeddings of the chat model (static), the chat model itself, or another MODEL; default encoder (${VARIABLE})`,
};

export const PROJECTION_FLAG: Flag = {
  name: '--memory-projection',
  value: 'file',
  variable: 'RUVLLM_MEMORY_PROJECTION',
  description:
    'projection of ruvllm train embeddings for the embedder; records are embedded again when it changes (RUVLLM_MEMORY_PROJECTION)',
};

/** The file of --memory-projection; undefined: none. */
export const readProjectionPath = ({ values, io }: { values: FlagValues; io: CliIo }): string | undefined =>
  (values[PROJECTION_FLAG.name] as string | undefined) ?? (io.environment[PROJECTION_FLAG.variable!] || undefined);

export interface EmbedderChoice {
  readonly embedder: EmbedderName;
  /** A model other than the command's. */
  readonly reference: string | null;
  readonly isExplicit: boolean;
}

/** Looks like a file or reference, unlike a misspelt `static`. */
const REFERENCE = /[/\\:]|\.gguf$/i;

export function readEmbedderChoice({ values, io }: { values: FlagValues; io: CliIo }): EmbedderChoice {
  const flag = values[NAME] as string | undefined;
  const text = flag ?? io.environment[VARIABLE] ?? '';
  if (text === '' && flag === undefined) return { embedder: 'encoder', reference: null, isExplicit: false };
  if (text === 'encoder' || text === 'static' || text === 'model') {
    return { embedder: text, reference: null, isExplicit: true };
  }
  if (REFERENCE.test(text)) return { embedder: 'model', reference: text, isExplicit: true };
  const name = flag === undefined ? VARIABLE : NAME;
  throw usageError(
    `${name} must be encoder, static, model or a model file or reference, got ${JSON.stringify(text)}`,
    name,
  );
}
