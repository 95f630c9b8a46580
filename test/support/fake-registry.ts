// An npm registry on loopback with the given packages; 404 for all others.
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { makePackage } from '../../src/hub/fake-npm.contract.ts';

export interface FakeRegistry extends AsyncDisposable {
  readonly url: string;
  /** By `name@version`. */
  readonly integrities: ReadonlyMap<string, string>;
}

/** `specs`: `name@version` of empty packages. */
export async function startFakeRegistry(specs: readonly string[]): Promise<FakeRegistry> {
  const packages = new Map(
    specs.map((spec) => {
      const at = spec.lastIndexOf('@');
      const [name, version] = [spec.slice(0, at), spec.slice(at + 1)];
      const manifest = { name, version };
      const { tarball } = makePackage([{ path: 'package.json', bytes: Buffer.from(JSON.stringify(manifest)) }]);
      const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`;
      return [name, { ...manifest, tarball, integrity }];
    }),
  );
  const server = createServer((request, response) => {
    const [, name = '', file] = /^\/((?:@[^/]+\/)?[^/]+)(\/.*)?$/.exec(decodeURIComponent(request.url!)) ?? [];
    const entry = packages.get(name);
    if (entry === undefined) return void response.writeHead(404, { 'content-type': 'application/json' }).end('{}');
    if (file !== undefined) return void response.end(entry.tarball);
    const { version, integrity } = entry;
    const dist = { tarball: `${url}/${name}/-/package.tgz`, integrity };
    const document = { name, 'dist-tags': { latest: version }, versions: { [version]: { name, version, dist } } };
    response.setHeader('content-type', 'application/json').end(JSON.stringify(document));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    integrities: new Map(
      [...packages.values()].map(({ name, version, integrity }) => [`${name}@${version}`, integrity]),
    ),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
