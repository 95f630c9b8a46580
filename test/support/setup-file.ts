// Vitest runs this before each test file.
import { afterEach } from 'vitest';
import { runCleanups } from './after-tests.ts';

afterEach(runCleanups);
