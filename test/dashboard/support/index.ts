export { findBarriers } from './axe.ts';
export { browserPath, closeBrowser, openBrowser } from './browser.ts';
export { canRun, type DashboardServer, type DashboardServerOptions, startDashboardServer } from './dashboard-server.ts';
export { openPage, type PageOptions, type WatchedPage } from './open-page.ts';
