// Files, batches, stored chat completions and lists of embeddings.
import { describe, expect, test } from 'vitest';
import { refusalOf } from '../../../../test/support/refusal-of.ts';
import type { Batch } from '../../batches/types.ts';
import type { StoredEntry } from '../../stored/types.ts';
import { readCreateBatch, writeBatch } from './batch.ts';
import { isShortList, writeEmbeddingList } from './embedding-list.ts';
import { readUpload, writeFile } from './file.ts';
import { selectChats, writeStoredChat, writeStoredMessages } from './stored-chat.ts';

const DAY_S = 86_400;

describe('an upload', () => {
  const file = new File(['\uFEFFé'], 'a.jsonl');
  const formOf = (fields: Readonly<Record<string, string | Blob>>): FormData => {
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.append(name, value);
    return form;
  };
  const read = (more: Readonly<Record<string, string | Blob>> = {}) =>
    readUpload(formOf({ purpose: 'batch', file, ...more }));
  const expiry = (seconds: string) => ({ 'expires_after[anchor]': 'created_at', 'expires_after[seconds]': seconds });

  test('has its text with its byte order mark, for 30 days', async () => {
    expect(await read()).toEqual({ name: 'a.jsonl', text: '\uFEFFé', numBytes: 5, retentionMs: 30 * DAY_S * 1000 });
  });

  test.each([
    ['3600', 3_600_000],
    [String(30 * DAY_S), 30 * DAY_S * 1000],
  ])('is kept for %s s', async (seconds, retentionMs) => {
    expect(await read(expiry(seconds))).toMatchObject({ retentionMs });
  });

  test.each([
    [{ purpose: 'assistants' }, 'purpose'],
    [{ file: 'text' }, 'file'],
    [{ more: 'a' }, 'more'],
    [{ file: new File([Uint8Array.of(0xff)], 'a') }, 'file'],
    [expiry('3599'), 'expires_after.seconds'],
    [expiry(String(30 * DAY_S + 1)), 'expires_after.seconds'],
    [{ 'expires_after[anchor]': 'created_at' }, 'expires_after.seconds'],
    [{ 'expires_after[seconds]': '3600' }, 'expires_after.anchor'],
    [{ ...expiry('3600'), 'expires_after[anchor]': 'last_active_at' }, 'expires_after.anchor'],
  ])('with %j is refused', async (more, param) => {
    await expect(read(more)).rejects.toMatchObject({ data: { httpStatus: 400, option: param } });
  });

  test('without a file is refused', async () => {
    await expect(readUpload(formOf({ purpose: 'batch' }))).rejects.toMatchObject({ data: { option: 'file' } });
  });

  test('is written in seconds', () => {
    const stored = {
      id: 'file-1',
      name: 'a',
      purpose: 'batch',
      numBytes: 5,
      createdMs: 1999,
      expiresMs: 2999,
      batch: null,
    };
    expect(writeFile(stored as never)).toEqual({
      id: 'file-1',
      object: 'file',
      bytes: 5,
      created_at: 1,
      expires_at: 2,
      filename: 'a',
      purpose: 'batch',
      status: 'processed',
    });
  });
});

describe('a batch', () => {
  const BODY = { input_file_id: 'file-1', endpoint: '/v1/embeddings', completion_window: '24h' };
  const BATCH: Batch = {
    id: 'batch_1',
    endpoint: '/v1/embeddings',
    status: 'in_progress',
    inputFileId: 'file-1',
    outputFileId: 'file-2',
    errorFileId: 'file-3',
    keyId: null,
    scopes: [],
    metadata: {},
    createdMs: 1999,
    windowEndMs: 9000,
    retentionMs: 1,
    times: { validating: 1999, in_progress: 3000 },
    numFileLines: 9,
    numRequests: 8,
    numSucceeded: 5,
    numFailed: 1,
    isExpired: false,
    outputBytes: 10,
    errorBytes: 10,
    errors: [],
    lease: null,
  };

  test('is read', () => {
    expect(readCreateBatch(BODY)).toEqual({
      inputFileId: 'file-1',
      endpoint: '/v1/embeddings',
      metadata: {},
      retentionMs: null,
    });
    const output_expires_after = { anchor: 'created_at', seconds: 3600 };
    expect(readCreateBatch({ ...BODY, metadata: { a: 'b' }, output_expires_after })).toMatchObject({
      metadata: { a: 'b' },
      retentionMs: 3_600_000,
    });
    expect(refusalOf(() => readCreateBatch({ ...BODY, completion_window: '1h' }))).toMatchObject({
      param: 'completion_window',
    });
  });

  test('that runs has neither results nor errors', () => {
    expect(writeBatch(BATCH)).toEqual({
      id: 'batch_1',
      object: 'batch',
      endpoint: '/v1/embeddings',
      input_file_id: 'file-1',
      completion_window: '24h',
      status: 'in_progress',
      created_at: 1,
      expires_at: 9,
      in_progress_at: 3,
      request_counts: { total: 8, completed: 5, failed: 1 },
      metadata: {},
    });
  });

  test('that ended has the files that are not empty', () => {
    const idsOf = (more: Partial<Batch>) => {
      const written = writeBatch({ ...BATCH, status: 'completed', ...more }) as Partial<Record<string, string>>;
      return [written['output_file_id'], written['error_file_id']];
    };
    expect(idsOf({})).toEqual(['file-2', 'file-3']);
    expect(idsOf({ outputBytes: 0 })).toEqual([undefined, 'file-3']);
    expect(idsOf({ errorBytes: 0 })).toEqual(['file-2', undefined]);
  });

  test('that failed says why', () => {
    const errors = [{ code: 'x', message: 'no', param: null, line: 1 }];
    expect(writeBatch({ ...BATCH, status: 'failed', errors })).toMatchObject({
      errors: { object: 'list', data: errors },
    });
  });
});

describe('stored chat completions', () => {
  const entry = (id: string, createdMs: number, model: string | null, metadata = {}): StoredEntry => ({
    id,
    type: 'chat.completion',
    createdMs,
    model,
    metadata,
    owners: [],
  });
  const entries = [
    entry('c', 2, 'm', { k: 'v', l: 'w' }),
    entry('b', 1, 'n', { k: 'v' }),
    entry('a', 2, 'm', { k: 'w' }),
  ];

  test.each([
    ['', ['b', 'a', 'c']],
    ['model=m', ['a', 'c']],
    ['model=other', []],
    ['metadata[k]=v', ['b', 'c']],
    ['metadata[k]=v&metadata[l]=w', ['c']],
    ['metadata[k]=v&model=n', ['b']],
    ['metadata[none]=v', []],
    ['metadata[toString]=v', []],
    ['metadata[]=v&metadata=v', ['b', 'a', 'c']],
  ])('that %j selects, the oldest first', (query, ids) => {
    expect(selectChats(entries, new URLSearchParams(query)).map(({ id }) => id)).toEqual(ids);
  });

  test('have their messages, with calls and results', () => {
    const stored = {
      id: 'chat_1',
      metadata: { k: 'v' },
      content: {
        body: { object: 'chat.completion', id: 'x' },
        messages: [
          { role: 'user', content: 'hi', name: 'ada' },
          { role: 'assistant', content: '', toolCalls: [{ id: '1', name: 'f', arguments: '{}' }] },
          { role: 'tool', content: 'r', toolCallId: '1' },
        ],
      },
    } as never;
    expect(writeStoredChat(stored)).toEqual({ object: 'chat.completion', id: 'chat_1', metadata: { k: 'v' } });
    const base = { refusal: null, name: null, content_parts: null };
    expect(writeStoredMessages(stored)).toEqual([
      { ...base, id: 'chat_1-0', role: 'user', content: 'hi', name: 'ada' },
      {
        ...base,
        id: 'chat_1-1',
        role: 'assistant',
        content: '',
        tool_calls: [{ id: '1', type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      { ...base, id: 'chat_1-2', role: 'tool', content: 'r', tool_call_id: '1' },
    ]);
  });
});

describe('a list of embeddings', () => {
  const list = (vectors: Float32Array[], isBase64 = false) => ({
    id: 'emb_1',
    model: 'm',
    vectors,
    isBase64,
    usage: { promptTokens: 3, totalTokens: 3 },
  });

  test.each([
    // Little-endian: 1 is 0000 803f, -2 is 0000 00c0.
    [false, [[1, -2], [0.5]]],
    [true, ['AACAPwAAAMA=', 'AAAAPw==']],
  ])('as base64: %j', (isBase64, embeddings) => {
    const pieces = [...writeEmbeddingList(list([Float32Array.of(1, -2), Float32Array.of(0.5)], isBase64))];
    expect(pieces).toHaveLength(1);
    expect(JSON.parse(pieces.join(''))).toEqual({
      id: 'emb_1',
      object: 'list',
      model: 'm',
      data: embeddings.map((embedding, index) => ({ object: 'embedding', index, embedding })),
      usage: { prompt_tokens: 3, total_tokens: 3 },
    });
  });

  test.each([
    [8, 1024, true, 2],
    [8, 1023, true, 1],
    [9, 1024, false, 2],
    [16, 1024, false, 3],
    [0, 0, true, 1],
  ])('of %i vectors of %i values is short: %j, and written in %i pieces', (count, length, isShort, numPieces) => {
    const vectors = Array.from({ length: count }, () => new Float32Array(length));
    expect(isShortList(list(vectors))).toBe(isShort);
    const pieces = [...writeEmbeddingList(list(vectors))];
    expect(pieces).toHaveLength(numPieces);
    expect(JSON.parse(pieces.join('')).data).toHaveLength(count);
  });
});
