import { describe, expect, test } from 'vitest';
import { createFakeIo } from '../../../test/support/cli-io.ts';
import { fitTable, oneLine } from './show.ts';

describe('text of strangers', () => {
  test('is one line, harmless, and no longer than its room', () => {
    expect(oneLine('a\n  b\tc ', 20)).toBe('a b c');
    expect(oneLine('\u001b[2Jx\u202ey', 40)).toBe('\\x1b[2Jx\\u{202e}y');
    expect(oneLine('x'.repeat(50), 10)).toBe(`${'x'.repeat(9)}…`);
    expect(oneLine('\u0007'.repeat(50), 10)).toHaveLength(10);
  });

  test('fits the terminal in a table', () => {
    const io = createFakeIo({ isTerminal: true });
    const rows = [
      ['A', 'TEXT'],
      ['1', 'word '.repeat(60)],
      ['a\nb', 'short'],
    ];
    const lines = fitTable(io, rows).split('\n');
    expect(lines.map((line) => line.length)).toEqual([9, 80, 10]);
    expect(lines[2]).toBe('a b  short');
    expect(fitTable(createFakeIo(), rows).split('\n')[1]).toHaveLength(200);
  });
});
