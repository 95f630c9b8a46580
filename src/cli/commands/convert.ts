import { existsSync } from 'node:fs';
import { RuvLLMError } from '../../core/errors.ts';
import { convertFolder, type ConvertFolderOptions } from '../../node/convert-folder.ts';
import type { CommandRunner } from '../command.ts';
import { defineFlags } from '../flags.ts';
import { formatBytes } from '../format.ts';
import { checkOutputName } from '../save-adapter.ts';
import { escapeLine } from '../safe-text.ts';
import { usageError } from '../usage-error.ts';

export const flags = defineFlags({
  '--type <F32|F16|BF16|Q8_0>': 'number format of matrices; default F16',
  '--name <name>': 'name stored in the file; default: the name of the folder',
  '--pre-tokenizer <name>': 'splitting rule, if that of tokenizer.json is unknown: a value of tokenizer.ggml.pre',
  '--mmproj': 'write the image encoder and projector of a SmolVLM checkpoint instead of its text model',
  '--force': 'overwrite an existing file',
});

/** Converts a checkpoint folder to a GGUF file. */
export const run: CommandRunner = async ({ output, args, values }) => {
  const [folder, path] = args as [string, string];
  checkOutputName(path);
  if (existsSync(path) && values['--force'] !== true) {
    throw new RuvLLMError('invalid_option', `${path} exists; --force overwrites it`);
  }
  const name = values['--name'] as string | undefined;
  const preTokenizer = values['--pre-tokenizer'] as string | undefined;
  const type = (values['--type'] as ConvertFolderOptions['type'] | undefined) ?? 'F16';
  const isProjector = values['--mmproj'] === true;
  if (isProjector && preTokenizer !== undefined)
    throw usageError('--pre-tokenizer has no effect with --mmproj: a projector has no vocabulary', '--pre-tokenizer');
  const progress = output.progress();
  let result;
  try {
    result = convertFolder({
      folder,
      path,
      type,
      part: isProjector ? 'projector' : 'text',
      ...(name === undefined ? {} : { name }),
      ...(preTokenizer === undefined ? {} : { preTokenizer }),
      onProgress: (doneBytes) => progress.update({ label: path, doneBytes, totalBytes: null }),
    });
  } finally {
    progress.finish();
  }
  output.document({ path, type, ...result });
  output.lines(
    `wrote ${escapeLine(path)}: ${result.architecture}, ${result.numTensors} tensors, ${formatBytes(result.sizeBytes)}`,
  );
  if (isProjector) {
    output.aside(`next: ruvllm run MODEL "what is this?" --mmproj ${escapeLine(path)} --image FILE`);
    return;
  }
  if (!result.hasTokenizer)
    output.note('the folder has no tokenizer.json or tokenizer.model: the file has no vocabulary');
  output.aside(`next: ruvllm run ${escapeLine(path)} "your prompt"`);
};
