import { randomBytes } from 'node:crypto';
import { RuvLLMError } from '../../../core/errors.ts';
import type { TenantSealer } from '../../../memory/store/sealer.ts';
import type { WrappedKeys } from '../../../memory/store/postgres/tenants.ts';
import { encodeHeader, openHeader } from '../sealing/folder-secrets.ts';
import { createNaming, derivePurpose } from '../sealing/key-ring.ts';
import type { MasterSource } from '../sealing/master-source.ts';
import { openFile, sealFile } from '../sealing/sealed-file.ts';
import { KEY_BYTES } from '../sealing/sealing.ts';
import { createTenantSealer } from './tenant-sealers.ts';

const HEADER_VERSION = 1;
/** It is sealed with this name. */
const HEADER_NAME = 'memory in PostgreSQL';
/** Keys that are held open; to open one again costs microseconds. */
const MAX_OPENED = 1024;

export interface PostgresHeader {
  create(): string;
  open(header: string): WrappedKeys;
  /**
   * The same secrets, sealed by another master key. They stay what they are, for processes that have the memory open know them and go
   * on. A header that somebody else has sealed anew meanwhile is refused.
   */
  rotate(header: string, to: MasterSource): string;
}

/** The secrets of a memory in a database: the same header and the same wrapped keys as in a folder, kept in rows. */
export function createPostgresHeader(masterKey: () => MasterSource, scryptN?: number): PostgresHeader {
  const options = { version: HEADER_VERSION, ...(scryptN === undefined ? {} : { scryptN }) };
  return {
    create() {
      const secrets = { naming: randomBytes(KEY_BYTES), wrapping: randomBytes(KEY_BYTES), previous: null };
      return Buffer.from(encodeHeader(HEADER_NAME, masterKey(), secrets, options)).toString('utf8');
    },
    open(header) {
      const { naming, wrapping } = openHeader(Buffer.from(header), HEADER_NAME, masterKey(), options);
      return createWrappedKeys(naming, wrapping);
    },
    rotate(header, to) {
      const secrets = openHeader(Buffer.from(header), HEADER_NAME, masterKey(), options);
      return Buffer.from(encodeHeader(HEADER_NAME, to, secrets, options)).toString('utf8');
    },
  };
}

function createWrappedKeys(naming: Uint8Array, wrapping: Uint8Array): WrappedKeys {
  const nameOf = createNaming(naming);
  const key = derivePurpose(wrapping, 'wrap keys of tenants');
  /** By the wrapped bytes: after an erasure the same tenant has others. */
  const opened = new Map<string, TenantSealer>();

  return {
    idOf: (tenant) => nameOf('tenant', tenant),
    create(tenantId) {
      const secret = randomBytes(KEY_BYTES);
      try {
        return Buffer.concat(sealFile({ kind: 'key', key, name: tenantId }, 0, secret));
      } finally {
        secret.fill(0);
      }
    },
    open(tenantId, wrapped) {
      const name = `${tenantId} ${Buffer.from(wrapped).toString('base64')}`;
      const known = opened.get(name);
      if (known !== undefined) return known;
      const secret = openFile({ kind: 'key', key, name: tenantId }, wrapped)?.bytes;
      if (secret?.length !== KEY_BYTES) {
        throw new RuvLLMError('io', `the key of tenant ${tenantId} does not open with this master key`, { data: { tenantId } }); // prettier-ignore
      }
      const sealer = createTenantSealer({ sealing: derivePurpose(secret, 'seal'), naming: derivePurpose(secret, 'name') }); // prettier-ignore
      secret.fill(0);
      for (const oldest of opened.keys()) {
        if (opened.size < MAX_OPENED) break;
        opened.delete(oldest);
      }
      opened.set(name, sealer);
      return sealer;
    },
  };
}
