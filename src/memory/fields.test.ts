import { expect, test } from 'vitest';
import { checkRegistry, MEMORY_FIELDS } from './fields.ts';

test('[MS8] a field has one type in all kinds, and a name that can stand in SQL', () => {
  const fields = checkRegistry(MEMORY_FIELDS);
  expect(fields.get('sessionId')).toEqual({ type: 'word', isIndexed: true });
  const twice = { ...MEMORY_FIELDS, fact: { quality: { type: 'word', isIndexed: false } } } as const;
  expect(() => checkRegistry(twice)).toThrow('"quality" is a number elsewhere and a word in fact');
  for (const name of ['a b', "a'b", '', '1a', 'a.b', 'x'.repeat(41)]) {
    const odd = { ...MEMORY_FIELDS, fact: { [name]: { type: 'word', isIndexed: false } } } as const;
    expect(() => checkRegistry(odd)).toThrow('is not a valid field name');
  }
});
