// Vitest runs this before each test file.
import { afterAll, afterEach, expect } from 'vitest';
// @ts-expect-error -- scripts have no types: they run before anything is installed
import { processorMs } from '../../scripts/processor-time.mjs';
import { runCleanups } from './after-tests.ts';
import { useOwnFolders } from './own-folders.ts';
import './same-bytes.ts';

useOwnFolders(process.env['RUVLLM_TEST_FOLDER']!, expect.getState().testPath!);

// Tests name the embedder that they are about; without this each would look for the default one in the registry.
process.env['RUVLLM_MEMORY_EMBEDDER'] ??= 'static';

afterEach(runCleanups);

// The reporter reads it: what a file takes on a machine that does nothing else.
const before: number = processorMs();
// eslint-disable-next-line no-empty-pattern -- vitest reads the names of fixtures from it
afterAll(({}, { meta }) => Object.assign(meta, { processorMs: (processorMs() as number) - before }));
