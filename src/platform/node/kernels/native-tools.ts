import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { PACKAGE_FOLDER } from '../files/package-folder.ts';
import { PREBUILD_NAME } from './native-addon.ts';

/** Whether the processor's matrix unit can be used: the system gives its registers only to those who ask. */
export type AmxState = 'permitted' | 'refused' | 'absent' | 'unknown';

// In the repository the kernels can be compiled; the published package has no sources.
const SCRIPT = new URL('scripts/build-native.mjs', PACKAGE_FOLDER);

function isOnPath(command: string, path: string): boolean {
  return path.split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, command), constants.X_OK);
      return folder !== '';
    } catch {
      return false;
    }
  });
}

/** What is to be done where nothing is built. */
export function describeMissingBuild(
  environment: Readonly<Record<string, string | undefined>> = process.env,
  canCompile = existsSync(SCRIPT),
): string {
  if (!canCompile) return `this package has none for ${PREBUILD_NAME}`;
  const [compiler] = (environment['CC'] || 'cc').split(' ') as [string];
  if (compiler.includes('/') ? existsSync(compiler) : isOnPath(compiler, environment['PATH'] ?? '')) {
    return 'npm run build:native';
  }
  return `no C compiler (${compiler}): for example, apt-get install gcc libc6-dev, then npm run build:native`;
}

/** Transparent large pages as the system has them set: the word in brackets; null where there are none. */
export function parseLargePages(setting: string): 'always' | 'madvise' | 'never' | null {
  return (/\[(always|madvise|never)\]/.exec(setting)?.[1] ?? null) as ReturnType<typeof parseLargePages>;
}

export function readLargePages(): ReturnType<typeof parseLargePages> {
  try {
    return parseLargePages(readFileSync('/sys/kernel/mm/transparent_hugepage/enabled', 'utf8'));
  } catch {
    return null;
  }
}

/** `cpuFeatures`: what the processor has, by /proc/cpuinfo; `nativeFeatures`: what the addon may use. */
export function findAmxState(cpuFeatures: readonly string[], nativeFeatures: readonly string[] | null): AmxState {
  if (nativeFeatures?.includes('amx')) return 'permitted';
  if (!cpuFeatures.includes('amx_int8')) return cpuFeatures.length === 0 ? 'unknown' : 'absent';
  return nativeFeatures === null ? 'unknown' : 'refused';
}
