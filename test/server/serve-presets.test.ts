// `ruvllm serve` with models of a settings file.
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { isServerBuilt } from '../support/dist-server.ts';
import { buildRandomModel } from '../support/random-model.ts';
import { createServeFolder, type ServeFolder } from '../support/serve-process.ts';

let folder: ServeFolder;
let config: string;
beforeAll(() => {
  folder = createServeFolder({ contextLength: 512 });
  const place = dirname(folder.model);
  const other = buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 8, shape: { contextLength: 320 } });
  writeFileSync(join(place, 'other.gguf'), other);
  config = join(place, 'presets.json');
  const settings = {
    load: { kvSpill: './pages' },
    models: {
      first: {
        model: './tiny.gguf',
        aliases: ['gpt-4o'],
        context: 384,
        sampling: { temperature: 0, topP: 0.9 },
        group: 'one',
      },
      second: { model: './other.gguf', idleUnload: 1, group: 'one' },
    },
    modelGroups: { one: { maxLoaded: 1 } },
  };
  writeFileSync(config, JSON.stringify(settings));
});
afterEach(() => folder.here.stopAll());
afterAll(() => folder.dispose());

async function connect(...args: string[]) {
  const { url, models } = await folder.here.start('--config', config, ...args);
  const get = async (path: string): Promise<any> => (await fetch(`${url}${path}`)).json();
  const ask = async (model: string, more: object = {}): Promise<any> => {
    const body = { model, messages: [{ role: 'user', content: 'word '.repeat(24) }], max_tokens: 8, ...more };
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body: JSON.stringify(body) });
    return { status: response.status, ...((await response.json()) as object) };
  };
  const textOf = async (model: string, more?: object): Promise<string> =>
    (await ask(model, { ignore_eos: true, ...more })).choices[0].message.content;
  const states = async (): Promise<Record<string, string>> =>
    Object.fromEntries((await get('/v1/models')).data.map(({ id, state }: any) => [id, state]));
  return { models, get, ask, textOf, states };
}

describe.skipIf(!isServerBuilt)('models of the settings file', () => {
  test('have their names, context and sampling; requests override the sampling', async () => {
    const { models, get, ask, textOf } = await connect();
    expect(models).toEqual(['first', 'second']);
    for (const name of ['first', 'gpt-4o', 'default']) expect((await ask(name)).status, name).toBe(200);
    const props = await get('/props');
    expect(props.models[0]).toMatchObject({
      id: 'first',
      sampling: { temperature: 0, topP: 0.9 },
      info: { maxContext: 384, sampling: { temperature: 0, topP: 0.9, source: 'config' } },
    });
    expect(props.default_generation_settings.params).toMatchObject({ temperature: 0, top_p: 0.9 });
    const greedy = await textOf('first', { seed: 1 });
    expect(await textOf('first', { seed: 2 })).toBe(greedy);
    expect(await textOf('first', { seed: 2, temperature: 2, top_p: 1 })).not.toBe(greedy);
  });

  test('[M10] [M11] make room for each other, become idle, and keep their cached prefixes on disk', async () => {
    const { ask, states } = await connect();
    // Other tests use the same folder of pages.
    const question = { messages: [{ role: 'user', content: 'pages '.repeat(20) }] };
    const cold = await ask('first', question);
    expect(cold.usage.prompt_tokens_details.cached_tokens).toBe(0);
    expect((await ask('second')).status).toBe(200);
    expect(await states()).toEqual({ first: 'unloaded', second: 'loaded' });
    const warm = await ask('first', question);
    expect(warm.usage.prompt_tokens_details.cached_tokens).toBeGreaterThan(32);
    expect(warm.choices[0].message).toEqual(cold.choices[0].message);
    expect(await states()).toEqual({ first: 'loaded', second: 'unloaded' });
    await ask('second');
    // The test's own time limit ends this loop.
    while ((await states())['second'] !== 'unloaded') await new Promise((resolve) => setTimeout(resolve, 100));
  });

  test('the command line names the first model and may replace a file', async () => {
    const place = dirname(folder.model);
    const { models, get } = await connect('second', `first=${join(place, 'other.gguf')}`);
    expect(models).toEqual(['second', 'first']);
    const loaded = (await get('/props')).models[0];
    expect(loaded).toMatchObject({ id: 'second', aliases: ['default'], info: { contextLength: 320 } });
  });
});
