"""Django's migrate of its own applications: forwards on an empty database, what their models do there, and back."""

import os
import subprocess
import sys

import pytest

SETTINGS = """
DATABASES = {{"default": {{"ENGINE": "django.db.backends.postgresql", "HOST": "127.0.0.1", "PORT": {port},
                           "NAME": "onrush", "USER": "test"}}}}
APPS = "admin auth contenttypes flatpages messages redirects sessions sites".split()
INSTALLED_APPS = ["django.contrib." + app for app in APPS]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
SECRET_KEY, SITE_ID, USE_TZ = "of this test", 1, True
# No page is served.
SILENCED_SYSTEM_CHECKS = ["admin.E403", "admin.E408", "admin.E409", "admin.E410"]
"""
MIGRATED = ["admin", "auth", "contenttypes", "flatpages", "redirects", "sessions", "sites"]

USE = """
import django
django.setup()
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.contrib.flatpages.models import FlatPage
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sites.models import Site
from django.db import IntegrityError, transaction

ann = User.objects.create_superuser("ann", "ann@example.com", "secret")
group = Group.objects.create(name="editors")
group.permissions.set(Permission.objects.filter(codename__startswith="change_"))
ann.groups.add(group)
user = ContentType.objects.get_for_model(User)
assert ann.user_permissions.count() == 0
assert Permission.objects.filter(group__user=ann, content_type=user).get().codename == "change_user"
try:
    with transaction.atomic():
        User.objects.create_user("ann")
    raise SystemExit("two users have one name")
except IntegrityError:
    pass
page = FlatPage.objects.create(url="/about/", title="About")
page.sites.add(Site.objects.get_current())
assert FlatPage.objects.filter(sites__domain="example.com").get() == page
LogEntry.objects.create(user=ann, content_type=user, object_repr="ann", action_flag=1)
session = SessionStore()
session["seen"] = [1, 2]
session.save()
assert SessionStore(session.session_key)["seen"] == [1, 2]
ann.delete()
assert not LogEntry.objects.exists() and Group.objects.get().user_set.count() == 0
"""


@pytest.fixture
def run(server, tmp_path):
    (tmp_path / "project_settings.py").write_text(SETTINGS.format(port=server.port))
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "project_settings", "PYTHONPATH": str(tmp_path)}

    def run(*arguments):
        done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_djangos_own_applications_migrate_and_work_and_go(run):
    run("-m", "django", "migrate", "--no-input")
    # Nothing is left to be migrated, and no model is another than its table.
    run("-m", "django", "migrate", "--check")
    run("-m", "django", "makemigrations", "--check", "--dry-run")
    run("-c", USE)
    tables = run("-m", "django", "inspectdb")
    assert "class AuthUser(models.Model):" in tables and "models.ForeignKey(AuthGroup" in tables
    run("-m", "django", "flush", "--no-input")
    for application in reversed(MIGRATED):
        run("-m", "django", "migrate", application, "zero", "--no-input")
    assert "class AuthUser" not in run("-m", "django", "inspectdb")
