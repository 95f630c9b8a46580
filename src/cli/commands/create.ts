import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import { parseModelfile } from '../../server/wire/ollama/modelfile.ts';
import type { CommandRunner } from '../command.ts';
import { defineFlags, type Flag } from '../flags.ts';
import { openHub } from '../open-hub.ts';
import { readRegularFile } from '../../platform/node/files/json-file.ts';

export const flags: readonly Flag[] = defineFlags({
  '--file <path>': 'the Modelfile; default ./Modelfile',
}).map((flag) => ({ ...flag, short: '-f' }));

/** Saves a model with the defaults of a Modelfile. */
export const run: CommandRunner = async ({ output, args, values }) => {
  const name = args[0]!;
  const path = (values['--file'] as string | undefined) ?? 'Modelfile';
  if (!existsSync(path)) throw new RuvLLMError('not_found', `Modelfile ${path} does not exist; name it with -f`);
  const definition = parseModelfile(new TextDecoder().decode(readRegularFile(path)));
  // Paths are relative to the Modelfile.
  const inFolder = (text: string): string => resolve(dirname(path), text);
  const isFile = /^[.~/\\]/.test(definition.from) || existsSync(inFolder(definition.from));
  const from = isFile ? inFolder(definition.from) : definition.from;
  if (isFile && !existsSync(from)) throw new RuvLLMError('not_found', `${from} of FROM does not exist`);
  const adapter = definition.adapter === null ? null : inFolder(definition.adapter);
  if (adapter !== null && !existsSync(adapter)) {
    throw new RuvLLMError('not_found', `${adapter} of ADAPTER does not exist`);
  }
  const hub = openHub();
  await hub.expandName(from);
  const model = { ...definition, from, adapter, createdMs: Date.now() };
  await hub.saved.save(name, model);
  output.document({ name, ...model });
  output.lines(`created ${name} from ${from}`);
  output.aside(`next: ruvllm run ${name} "your prompt"`);
};
