// The official client of Ollama against `ruvllm serve`, pointed at it by its address alone.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Ollama } from 'ollama';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createServeFolder, type ServeFolder } from '../support/serve-process.ts';

const isBuilt = existsSync(fileURLToPath(new URL('../../dist/lib/server.js', import.meta.url)));

describe.skipIf(!isBuilt)('ollama', () => {
  let folder: ServeFolder;
  let ollama: Ollama;
  let host: string;
  let files: Server;

  beforeAll(async () => {
    folder = createServeFolder({ contextLength: 1024 });
    // Saved and pulled models must not reach the cache of this user.
    folder.environment['HF_HUB_CACHE'] = join(dirname(folder.model), 'hub');
    files = createServer((_request, response) => response.end(readFileSync(folder.model)));
    await new Promise<void>((resolve) => files.listen(0, '127.0.0.1', resolve));
    folder.environment['RUVLLM_HUB_ORIGINS'] = `http://127.0.0.1:${(files.address() as AddressInfo).port}`;
    const { url } = await folder.start(`tiny=${folder.model}`, '--no-memory', '--threads', '1');
    host = url;
    ollama = new Ollama({ host });
  });
  afterAll(() => {
    files?.close();
    folder?.dispose();
  });

  const options = { num_predict: 8, seed: 4, temperature: 1 };
  const messages = [{ role: 'user', content: 'Why is the sky blue?' }];

  test('chat, whole and streamed', async () => {
    const answer = await ollama.chat({ model: 'tiny', messages, options });
    expect(answer).toMatchObject({ model: 'tiny', done: true, message: { role: 'assistant' } });
    expect(answer.eval_count).toBeGreaterThan(0);
    let text = '';
    let numParts = 0;
    for await (const part of await ollama.chat({ model: 'tiny', messages, options, stream: true })) {
      text += part.message.content;
      numParts++;
      if (part.done) expect(part.total_duration).toBeGreaterThan(0);
    }
    expect(text).toBe(answer.message.content);
    expect(numParts).toBeGreaterThan(1);
  });

  test('generate, whole and streamed, with a system prompt', async () => {
    const request = { model: 'tiny:latest', prompt: 'Once upon a time', system: 'Be brief.', options };
    const answer = await ollama.generate(request);
    let text = '';
    for await (const part of await ollama.generate({ ...request, stream: true })) text += part.response;
    expect(text).toBe(answer.response);
    expect(answer.done_reason).toMatch(/^(?:stop|length)$/);
  });

  test('curl -d of the documentation, which sends a form', async () => {
    const response = await fetch(`${host}/api/generate`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: JSON.stringify({ model: 'tiny', prompt: 'hi', stream: false, options }),
    });
    expect(await response.json()).toMatchObject({ done: true, response: expect.any(String) });
  });

  test('structured output', async () => {
    const format = { type: 'object', properties: { isBlue: { type: 'boolean' } }, required: ['isBlue'] };
    const answer = await ollama.chat({ model: 'tiny', messages, format });
    expect(typeof (JSON.parse(answer.message.content) as { isBlue: unknown }).isBlue).toBe('boolean');
    const { response } = await ollama.generate({
      model: 'tiny',
      prompt: 'x',
      format: 'json',
      options: { num_predict: 60 },
    });
    expect(JSON.parse(response ?? '')).toBeTypeOf('object');
  });

  test('tools and their results', async () => {
    const tools = [
      {
        type: 'function',
        function: {
          name: 'add',
          description: 'Adds two numbers.',
          parameters: { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] },
        },
      },
    ];
    const call = { function: { name: 'add', arguments: { a: 1 } } };
    const answer = await ollama.chat({
      model: 'tiny',
      options,
      tools,
      messages: [
        { role: 'user', content: 'add' },
        { role: 'assistant', content: '', tool_calls: [call] },
        { role: 'tool', content: '1', tool_name: 'add' },
      ],
    });
    expect(answer.done).toBe(true);
  });

  test('embed and embeddings', async () => {
    const { embeddings } = await ollama.embed({ model: 'tiny', input: ['one', 'two'] });
    expect(embeddings).toHaveLength(2);
    const { embedding } = await ollama.embeddings({ model: 'tiny', prompt: 'one' });
    expect(embedding).toEqual(embeddings[0]);
  });

  test('list, show, ps and version', async () => {
    const { models } = await ollama.list();
    expect(models.map(({ name }) => name)).toContain('tiny:latest');
    expect(models[0]!.details).toMatchObject({ format: 'gguf', family: 'llama', quantization_level: 'Q8_0' });
    const shown = await ollama.show({ model: 'tiny' });
    expect(shown.capabilities).toContain('completion');
    expect(shown.model_info).toMatchObject({ 'general.architecture': 'llama', 'llama.context_length': 1024 });
    const running = await ollama.ps();
    expect(running.models.map(({ name }) => name)).toEqual(['tiny:latest']);
    expect((await ollama.version()).version).toMatch(/^\d+\.\d+\.\d+/);
  });

  test('create, use, copy and delete a model of its own', async () => {
    const parameters = { num_predict: 3, temperature: 0 };
    await ollama.create({ model: 'brief', from: 'tiny', system: 'Answer in three words.', parameters });
    const answer = await ollama.chat({ model: 'brief', messages });
    expect(answer.eval_count).toBeLessThanOrEqual(3);
    expect(answer.prompt_eval_count).toBeGreaterThan(
      (await ollama.chat({ model: 'tiny', messages, options })).prompt_eval_count,
    );
    await ollama.copy({ source: 'brief', destination: 'shorter' });
    expect((await ollama.chat({ model: 'shorter', messages })).message.content).toBe(answer.message.content);
    await ollama.delete({ model: 'brief' });
    await expect(ollama.chat({ model: 'brief', messages })).rejects.toThrow('not found');
    expect((await ollama.show({ model: 'shorter' })).system).toBe('Answer in three words.');
  });

  test('pull a file, use it, and delete it', async () => {
    const url = `http://127.0.0.1:${(files.address() as AddressInfo).port}/other.gguf`;
    const steps: string[] = [];
    for await (const { status } of await ollama.pull({ model: url, stream: true })) steps.push(status);
    expect(steps.at(-1)).toBe('success');
    const answer = await ollama.generate({ model: url, prompt: 'hi', options, keep_alive: '5m' });
    expect(answer.eval_count).toBeGreaterThan(0);
    const running = (await ollama.ps()).models.find(({ name }) => name === url);
    expect(Date.parse(String(running!.expires_at))).toBeLessThan(Date.now() + 301_000);
    await ollama.delete({ model: url });
    expect((await ollama.list()).models.map(({ name }) => name)).not.toContain(url);
  });

  test('keep_alive 0 unloads, and the next call loads again', async () => {
    await ollama.chat({ model: 'tiny', messages, options, keep_alive: 0 });
    expect((await ollama.ps()).models).toEqual([]);
    expect((await ollama.chat({ model: 'tiny', messages, options })).load_duration).toBeGreaterThan(1e6);
  });

  test('aborts a stream, and reports errors as the client expects them', async () => {
    const client = new Ollama({ host });
    const stream = await client.chat({ model: 'tiny', messages, stream: true, options: { num_predict: -1 } });
    await expect(async () => {
      for await (const _part of stream) client.abort();
    }).rejects.toThrow();
    await expect(ollama.chat({ model: 'tinylama', messages })).rejects.toMatchObject({
      status_code: 404,
      error: expect.stringContaining('did you mean tinyllama'),
    });
    const image = [{ role: 'user', content: 'x', images: [new Uint8Array([1])] }];
    await expect(ollama.chat({ model: 'tiny', messages: image })).rejects.toMatchObject({ status_code: 400 });
    await expect(ollama.push({ model: 'tiny' })).rejects.toMatchObject({ status_code: 501 });
  });

  test('a Modelfile on the command line becomes a model of the server', async () => {
    const path = join(dirname(folder.model), 'Modelfile');
    writeFileSync(path, 'FROM ./tiny.gguf\nPARAMETER num_predict 2\nSYSTEM """\nBe\nbrief."""\n');
    expect(folder.run('create', 'filed', '-f', path).status).toBe(0);
    expect((await ollama.chat({ model: 'filed', messages })).eval_count).toBeLessThanOrEqual(2);
    expect(folder.run('cp', 'filed', 'again').status).toBe(0);
    expect((await ollama.show({ model: 'again' })).system).toBe('Be\nbrief.');
    expect(folder.run('rm', 'again').status).toBe(0);
    expect(folder.run('stop', 'tiny', '--url', host).status).toBe(0);
    expect((await ollama.ps()).models.map(({ name }) => name)).not.toContain('tiny:latest');
  });
});
