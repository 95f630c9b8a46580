import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type OpenMemoryOptions, openNodeMemory } from './open-memory.ts';

test.each([
  [{ place: '' }, 'place', 'an empty string'],
  [{ place: 5 }, 'place', 'number'],
  [{ place: 'mysql://user:SECRET@host/db' }, 'place', 'starts with mysql:'],
  [{ place: 'https://host/db' }, 'place', 'starts with https:'],
  [{ plaec: 'memory' }, 'plaec', 'did you mean place?'],
])('%j is refused before anything is made', async (options, option, says) => {
  const before = readdirSync('.');
  const refused = openNodeMemory(options as OpenMemoryOptions);
  await expect(refused).rejects.toMatchObject({ code: 'invalid_option', data: { option } });
  const error = (await refused.catch((reason: unknown) => reason)) as Error;
  expect(error.message).toContain(says);
  expect(error.message).not.toContain('SECRET');
  expect(readdirSync('.')).toEqual(before);
});
