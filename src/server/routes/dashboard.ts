import { type DashboardFiles, serveDashboardFile } from '../dashboard-files.ts';
import { refusal } from '../errors.ts';
import { json, type Route } from '../route.ts';
import { openaiErrors } from '../wire/openai/error-body.ts';

/** Routes of the dashboard. They are public, because all data requires a key. */
export function dashboardRoutes(files: DashboardFiles): readonly Route[] {
  const get = (path: string, summary: string, handle: Route['handle']): Route => ({
    method: 'GET',
    path,
    scope: 'public',
    summary,
    body: null,
    errors: openaiErrors,
    handle,
  });
  const serveFile: Route['handle'] = ({ request }) => {
    const path = new URL(request.url).pathname;
    const file = files.get(path);
    if (file === undefined) throw refusal(404, 'unknown_url', `${JSON.stringify(path.slice(0, 200))} not found`);
    return serveDashboardFile(file, { path, headers: request.headers });
  };
  return [
    get('/', 'The dashboard.', serveFile),
    get('/assets/:name', 'A file of the dashboard.', serveFile),
    get('/engine/:name', 'A file of the engine that runs in the dashboard.', serveFile),
    get('/icon.svg', 'The icon of the dashboard.', serveFile),
    get('/manifest.webmanifest', 'How browsers install the dashboard.', serveFile),
    get('/docs', 'The documentation.', () => new Response(null, { status: 308, headers: { location: '/docs/' } })),
    get('/docs/:path{.*}', 'A page of the documentation.', serveFile),
    // Requested first: browsers log a failed request without a key in the console.
    get('/dashboard.json', 'Whether the dashboard has to ask for a key.', ({ services }) =>
      json({ needs_key: !services.guard.isOpen }),
    ),
  ];
}
