import { randomBytes } from 'node:crypto';
import { RuvLLMError } from '../../../core/errors.ts';
import { createLruMap } from '../../../memory/common/lru-map.ts';
import type { TenantSealer } from '../../../memory/store/sealer.ts';
import type { WrappedKeys } from '../../../memory/store/postgres/tenants.ts';
import { encodeHeader, openHeader } from '../sealing/folder-secrets.ts';
import { createNaming, derivePurpose } from '../sealing/key-ring.ts';
import type { MasterSource } from '../sealing/master-source.ts';
import { openFile, sealFile } from '../sealing/sealed-file.ts';
import { KEY_BYTES } from '../sealing/sealing.ts';
import { createTenantSealer } from './tenant-sealers.ts';

const HEADER_VERSION = 1;
/** Part of the associated data: the name stays. */
const HEADER_NAME = 'memory in PostgreSQL';
/** Open keys; opening one again takes microseconds. */
const MAX_OPENED = 1024;

interface PostgresHeader {
  create(): string;
  open(header: string): WrappedKeys;
  /**
   * The same secrets, sealed by another master key: processes that have the memory open keep working. Refuses a header that
   * another process has sealed anew meanwhile.
   */
  rotate(header: string, to: MasterSource): string;
}

/** The secrets of a memory in a database: the header and wrapped keys of a folder, stored in rows. */
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
  /** By wrapped bytes, because a tenant gets a new key after an erasure. */
  const opened = createLruMap<TenantSealer>(MAX_OPENED);

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
        throw new RuvLLMError('io', `the key of tenant ${tenantId} cannot be decrypted with this master key`, { data: { tenantId, isDamaged: true } }); // prettier-ignore
      }
      const sealer = createTenantSealer({ sealing: derivePurpose(secret, 'seal'), naming: derivePurpose(secret, 'name') }); // prettier-ignore
      secret.fill(0);
      opened.set(name, sealer);
      return sealer;
    },
  };
}
