import { writeFileSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { RuvLLMError } from '../../core/errors.ts';
import { actionCommand } from '../actions.ts';
import type { CommandContext } from '../command.ts';
import { API_KEY_FLAG, URL_FLAG } from '../config/common-flags.ts';
import { defineFlags, type Flag } from '../flags.ts';
import { dateOf } from '../memory/show.ts';
import { askServer, askServerForText, type NamedServer, readServer } from '../servers/ask-server.ts';
import { usageError } from '../usage-error.ts';
import { readRegularFile } from '../../platform/node/files/json-file.ts';

const SERVER_FLAGS: readonly Flag[] = [
  { ...URL_FLAG, description: `${URL_FLAG.description}; default http://127.0.0.1:8080` },
  API_KEY_FLAG,
];
const WAIT_ROW = { '--wait': 'create or show: wait until the batch has ended, and report its progress' };
const POLL_MS = 1000;
const PAGE = 100;

interface ServedBatch {
  readonly id: string;
  readonly status: string;
  readonly endpoint: string;
  readonly created_at: number;
  readonly expires_at: number;
  readonly input_file_id: string;
  readonly output_file_id?: string;
  readonly error_file_id?: string;
  readonly request_counts: { readonly total: number; readonly completed: number; readonly failed: number };
  readonly errors?: { readonly data: readonly { readonly line: number | null; readonly message: string }[] };
}

const openServer = ({ io, values }: CommandContext): NamedServer =>
  readServer({ io, values: { '--url': 'http://127.0.0.1:8080', ...values } });

async function ask<T>(context: CommandContext, method: string, path: string, body: object | null = null): Promise<T> {
  const server = openServer(context);
  return (await askServer(server, { method, url: new URL(`${server.base}${path}`), body })) as T;
}

const pathOf = (id: string): string => `/v1/batches/${encodeURIComponent(id)}`;
const hasEnded = ({ status }: ServedBatch): boolean => ['completed', 'failed', 'expired', 'cancelled'].includes(status);

function progressOf({ id, status, request_counts: { total, completed, failed } }: ServedBatch): string {
  return `${id}: ${status}, ${completed + failed} of ${total} requests done, ${failed} failed`;
}

/** The endpoint that the first request of a file names. */
function endpointOf(text: string, path: string): string {
  const first = text.split('\n').find((line) => line.trim() !== '');
  try {
    const { url } = JSON.parse(first ?? '') as { readonly url?: unknown };
    if (typeof url === 'string') return url;
  } catch {
    // Reported below.
  }
  throw usageError(`${path}: the first line names no url; set the endpoint with --endpoint`, '--endpoint');
}

function readRequests({ io }: CommandContext, path: string): string {
  return new TextDecoder().decode(readRegularFile(resolve(io.folder ?? '.', path)));
}

async function upload(context: CommandContext, path: string, text: string): Promise<string> {
  const form = new FormData();
  form.set('purpose', 'batch');
  form.set('file', new Blob([text]), basename(path));
  const encoded = new Response(form);
  const server = openServer(context);
  const { id } = (await askServer(server, {
    method: 'POST',
    url: new URL(`${server.base}/v1/files`),
    body: new Uint8Array(await encoded.arrayBuffer()),
    type: encoded.headers.get('content-type')!,
  })) as { readonly id: string };
  return id;
}

/** Polls until the batch has ended; each change of its progress is a line. */
async function waitForEnd(context: CommandContext, first: ServedBatch): Promise<ServedBatch> {
  let batch = first;
  let shown = '';
  for (;;) {
    const progress = progressOf(batch);
    if (progress !== shown && !hasEnded(batch)) context.output.note(progress);
    shown = progress;
    if (hasEnded(batch)) return batch;
    await sleep(POLL_MS, null, { signal: context.io.signal }).catch((error: unknown) => {
      throw new RuvLLMError('aborted', 'cancelled; the batch goes on', { cause: error });
    });
    batch = await ask(context, 'GET', pathOf(first.id));
  }
}

async function showBatch(context: CommandContext, first: ServedBatch): Promise<void> {
  const { output, values } = context;
  const batch = values['--wait'] === true ? await waitForEnd(context, first) : first;
  output.document(batch);
  const { total, completed, failed } = batch.request_counts;
  output.details([
    ['batch', batch.id],
    ['status', batch.status],
    ['endpoint', batch.endpoint],
    ['requests', `${total}: ${completed} completed, ${failed} failed`],
    ['created', dateOf(batch.created_at * 1000)],
    ['expires', dateOf(batch.expires_at * 1000)],
    ['input file', batch.input_file_id],
    ['output file', batch.output_file_id ?? '–'],
    ['error file', batch.error_file_id ?? '–'],
  ]);
  for (const { line, message } of batch.errors?.data ?? []) {
    output.lines(line === null ? message : `line ${line}: ${message}`);
  }
}

async function readResults(context: CommandContext, fileId: string | undefined): Promise<string> {
  if (fileId === undefined) return '';
  const server = openServer(context);
  const url = new URL(`${server.base}/v1/files/${encodeURIComponent(fileId)}/content`);
  return askServerForText(server, { method: 'GET', url, body: null });
}

/** Runs the requests of files in the background of a server. */
export const { flags, help, run } = actionCommand(
  'batch',
  {
    create: {
      args: '<file>',
      description: 'upload a file with one request per line and start it',
      flags: defineFlags({
        '--endpoint <path>': 'create: path of the requests; default: that of the first line',
        ...WAIT_ROW,
      }),
      async run(context, [path]) {
        const text = readRequests(context, path!);
        const endpoint = (context.values['--endpoint'] as string | undefined) ?? endpointOf(text, path!);
        const fileId = await upload(context, path!, text);
        const body = { input_file_id: fileId, endpoint, completion_window: '24h' };
        await showBatch(context, await ask<ServedBatch>(context, 'POST', '/v1/batches', body));
      },
    },
    list: {
      args: '',
      description: `list the newest batches, at most ${PAGE}`,
      async run(context) {
        const { data } = await ask<{ data: readonly ServedBatch[] }>(context, 'GET', `/v1/batches?limit=${PAGE}`);
        context.output.document({ batches: data });
        if (data.length === 0) return context.output.note('no batches');
        const rows = data.map(({ id, status, endpoint, created_at: created, request_counts: counts }) => [
          dateOf(created * 1000),
          status,
          `${counts.completed + counts.failed}/${counts.total}`,
          String(counts.failed),
          endpoint,
          id,
        ]);
        context.output.table(['CREATED', 'STATUS', 'DONE', 'FAILED', 'ENDPOINT', 'BATCH'], rows);
      },
    },
    show: {
      args: '<batch>',
      description: 'show the status and the progress of a batch',
      flags: defineFlags(WAIT_ROW),
      run: async (context, [id]) => showBatch(context, await ask(context, 'GET', pathOf(id!))),
    },
    cancel: {
      args: '<batch>',
      description: 'cancel a batch; finished requests keep their results',
      async run(context, [id]) {
        const batch = await ask<ServedBatch>(context, 'POST', `${pathOf(id!)}/cancel`);
        context.output.document(batch);
        context.output.note(progressOf(batch));
      },
    },
    results: {
      args: '<batch>',
      description: 'print the results of a batch that has ended, one JSON object per line, errors last',
      flags: defineFlags({
        '--errors': 'results: only the requests that failed',
        '--output <file>': 'results: write them to this file',
      }),
      async run(context, [id]) {
        const { output, values } = context;
        const batch = await ask<ServedBatch>(context, 'GET', pathOf(id!));
        if (!hasEnded(batch)) {
          throw new RuvLLMError('conflict', `${progressOf(batch)}; wait with: ruvllm batch show ${id} --wait`);
        }
        const good = values['--errors'] === true ? '' : await readResults(context, batch.output_file_id);
        const text = good + (await readResults(context, batch.error_file_id));
        const lines = text.split('\n').filter((line) => line !== '');
        output.document({ batch: batch.id, results: lines.map((line) => JSON.parse(line) as unknown) });
        const path = values['--output'] as string | undefined;
        if (path === undefined) return output.text(text);
        writeFileSync(resolve(context.io.folder ?? '.', path), text);
        output.note(`wrote ${lines.length} results to ${path}`);
      },
    },
  },
  { common: SERVER_FLAGS, notes: 'The server runs them at the lowest priority; see docs/batch.md.' },
);
