import { defaultKeyFolder, openKeyFolder } from '../../node/server/key-folder.ts';
import { withFixedKeys } from '../../server/keys/fixed-keys.ts';
import { createKeyStore, type KeyStore } from '../../server/keys/key-store.ts';
import type { CommandContext } from '../command.ts';
import { usageError } from '../usage-error.ts';
import { isLoopbackHost, readFixedKeys } from './listening.ts';

export interface ServedKeys {
  readonly keys: KeyStore;
  /** Without keys, everyone on this machine may send requests. */
  readonly hasKeys: boolean;
}

/** The API keys of a server or gateway; refuses a host that other machines can reach without keys. */
export function openServedKeys(context: CommandContext, host: string, corsOrigins: readonly string[] = []): ServedKeys {
  const isLoopback = isLoopbackHost(host);
  const fixedKeys = readFixedKeys(context, isLoopback && corsOrigins.length === 0);
  const keys = withFixedKeys(
    createKeyStore(openKeyFolder(defaultKeyFolder()), () => Date.now()),
    fixedKeys,
  );
  // A server whose only key has a damaged record must not be open to everyone.
  const hasKeys =
    fixedKeys.length > 0 || keys.list().some(({ revokedMs }) => revokedMs === null) || keys.problems().length > 0;
  if (!hasKeys && !isLoopback) {
    throw usageError(
      `${host} is reachable from other machines, but there are no API keys; create one with: ruvllm keys create NAME`,
      '--host',
    );
  }
  return { keys, hasKeys };
}
