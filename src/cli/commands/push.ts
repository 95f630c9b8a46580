import { existsSync } from 'node:fs';
import { RuvLLMError } from '../../core/errors.ts';
import type { PushOptions } from '../../hub/push-model.ts';
import { readJsonFile } from '../../platform/node/files/json-file.ts';
import type { CommandRunner } from '../command.ts';
import { defineFlags } from '../flags.ts';
import { formatBytes } from '../format.ts';
import { openHub } from '../open-hub.ts';
import { escapeLine } from '../safe-text.ts';

export const flags = defineFlags({
  '--record <file>': 'output of ruvllm quantize --json for this file: its figures go into the model card',
  '--base-model <repo>': 'the model that was quantized, as owner/repo, for the model card',
  '--create': 'create the repository if it does not exist',
  '--private': 'a new repository is private; requires --create',
  '--replace-card': 'replace an existing README.md',
});

const MAX_RECORD_BYTES = 1 << 20;

/** Uploads a model file to a Hugging Face compatible hub: HF_ENDPOINT, with the token HF_TOKEN. */
export const run: CommandRunner = async ({ io, output, args, values }) => {
  const [reference, repo] = args as [string, string];
  if (values['--private'] === true && values['--create'] !== true) {
    throw new RuvLLMError('invalid_option', '--private requires --create');
  }
  const hub = openHub();
  const path = existsSync(reference) ? reference : await hub.resolveModelPath(reference);
  const recordPath = values['--record'] as string | undefined;
  const record = recordPath === undefined ? null : readRecord(recordPath);
  const progress = output.progress();
  const pushed = await hub
    .pushModel(path, repo, {
      record,
      create: values['--create'] === true,
      isPrivate: values['--private'] === true,
      replaceCard: values['--replace-card'] === true,
      baseModel: (values['--base-model'] as string | undefined) ?? null,
      signal: io.signal,
      onProgress: ({ phase, doneBytes, totalBytes }) =>
        progress.update({ label: phase === 'hash' ? 'hashing' : path, doneBytes, totalBytes }),
    })
    .finally(() => progress.finish());
  output.document(pushed);
  const sent = pushed.sentBytes === 0 ? 'the hub had the file' : `${formatBytes(pushed.sentBytes)} sent`;
  output.lines(`pushed ${escapeLine(pushed.file)} to ${escapeLine(pushed.repo)} (${sent})`);
  if (!pushed.isCardWritten) output.note('the repository has a README.md, which was kept; --replace-card replaces it');
};

function readRecord(path: string): NonNullable<PushOptions['record']> {
  const record = readJsonFile(path, MAX_RECORD_BYTES) as Record<string, unknown> | null;
  const { sha256, type, bitsPerWeight, divergence = null, command = null } = record ?? {};
  if (typeof sha256 !== 'string' || typeof type !== 'string' || typeof bitsPerWeight !== 'number') {
    throw new RuvLLMError('invalid_option', `${path} is not the output of ruvllm quantize --json`);
  }
  const figures = divergence as NonNullable<PushOptions['record']>['divergence'];
  const isValid = figures === null || [figures.meanKl, figures.top1, figures.numTokens].every(Number.isFinite);
  if (!isValid) throw new RuvLLMError('invalid_option', `${path}: its divergence has no numbers`);
  return { sha256, type, bitsPerWeight, divergence: figures, command: typeof command === 'string' ? command : null };
}
