import type { Part } from './part.ts';
import { corrupt } from './parts/corrupt.ts';
import { documents } from './parts/documents.ts';
import { audit } from './parts/audit.ts';
import { drain } from './parts/drain.ts';
import { disk } from './parts/disk.ts';
import { fetchPart } from './parts/fetch.ts';
import { hostile } from './parts/hostile.ts';
import { injections } from './parts/injections.ts';
import { kills } from './parts/kills.ts';
import { load } from './parts/load.ts';
import { mcp } from './parts/mcp.ts';
import { tenants } from './parts/tenants.ts';
import { timing } from './parts/timing.ts';

/** All parts, in the order in which they run. */
export const PARTS: readonly Part[] = [
  kills,
  disk,
  corrupt,
  hostile,
  documents,
  mcp,
  injections,
  tenants,
  fetchPart,
  timing,
  load,
  audit,
  drain,
];
