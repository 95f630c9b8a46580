import { openModelFile } from '../../platform/node/files/open-model-file.ts';
import { createTokenizer } from '../../tokenizers/tokenizer.ts';
import type { CommandRunner } from '../command.ts';
import { defineFlags } from '../flags.ts';
import { openHub } from '../open-hub.ts';
import { readArgumentOrInput } from '../read-input.ts';
import { escapeLine } from '../safe-text.ts';

export const flags = defineFlags({
  '--special': 'parse control tokens in the text',
  '--bos': 'add the special tokens that the file defines, as run does',
});

/** Shows the tokens of a text; reads only the header of the model file. */
export const run: CommandRunner = async ({ io, output, args, values }) => {
  const [reference, argument] = args as [string, string?];
  const path = await openHub().resolveModelPath(reference);
  const gguf = openModelFile(path);
  try {
    const tokenizer = createTokenizer(gguf.metadata);
    const text = await readArgumentOrInput(argument, { io, output });
    const options = { addSpecial: values['--bos'] === true };
    const ids =
      values['--special'] === true ? tokenizer.encodeTemplate(text, options) : tokenizer.encode(text, options);
    const tokens = ids.map((id) => ({ id, piece: tokenizer.piece(id), isControl: tokenizer.isControl(id) }));
    output.document({ model: { reference, path }, tokenizer: tokenizer.kind, numTokens: ids.length, ids, tokens });
    output.table(
      null,
      tokens.map(({ id, piece }) => [String(id).padStart(7), JSON.stringify(escapeLine(piece))]),
    );
    output.aside(`${ids.length} tokens`);
  } finally {
    gguf.source.close();
  }
};
