// Text reaches the screen through src/cli/output.ts, which escapes it. The exceptions and their reasons:
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const WRITERS: Readonly<Record<string, string>> = {
  'output.ts': 'escapes everything',
  'report-error.ts': 'escapes errors itself',
  'run-cli.ts': 'help texts and JSON documents',
  'progress.ts': 'redraws its line; escapes labels itself',
  'chat/repl.ts': 'terminal modes and line breaks',
  'run-process.ts': 'wraps the streams',
  'main.ts': 'the version',
  'commands/listening.ts': 'the JSON log',
  'mcp/serve-lines.ts': 'messages of its protocol, as JSON',
};

const root = dirname(fileURLToPath(import.meta.url));

test('no other file writes to the screen', () => {
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'));
  const writers = files.filter((file) =>
    /\bconsole\.|\bprocess\.std|\b(?:stdout|stderr|sink|screen|stream)\.write\(/.test(
      readFileSync(join(root, file), 'utf8'),
    ),
  );
  // These write to files.
  const toFiles = [
    'memory/transfer.ts',
    'learning/change-actions.ts',
    'learning/federate-actions.ts',
    'training/checkpoint.ts',
    'training/write-parts.ts',
  ];
  expect(writers.filter((file) => !toFiles.includes(file)).sort()).toEqual(Object.keys(WRITERS).sort());
});
