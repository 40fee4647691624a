"""Django: the migrations of its own applications, and what its ORM does with their tables."""

import django
import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.db.models import Count

APPLICATIONS = ["admin", "auth", "contenttypes", "sessions", "messages", "sites", "flatpages", "redirects"]


@pytest.fixture(scope="module")
def migrated(server):
    database = {"ENGINE": "django.db.backends.postgresql", "NAME": "onrush", "USER": "test", "HOST": "127.0.0.1"}
    settings.configure(
        SECRET_KEY="of tests",
        USE_TZ=True,
        SITE_ID=1,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        INSTALLED_APPS=[f"django.contrib.{name}" for name in APPLICATIONS],
        DATABASES={"default": {**database, "PORT": server.port}},
    )
    django.setup()
    call_command("migrate", verbosity=0)
    yield
    connection.close()


@pytest.fixture
def users(migrated):
    from django.contrib.auth.models import User

    yield User.objects
    call_command("flush", interactive=False, verbosity=0)
    assert User.objects.count() == 0


def test_migrations_are_known_and_can_be_taken_back(migrated):
    call_command("migrate", "redirects", "zero", verbosity=0)
    assert "django_redirect" not in connection.introspection.table_names()
    call_command("migrate", verbosity=0)
    assert "django_redirect" in connection.introspection.table_names()
    call_command("migrate", "--check", verbosity=0)


def test_objects_reference_each_other(users):
    from django.contrib.auth.models import Group, Permission

    ann = users.create_user("ann", "ann@example.org", "secret")
    clerks = Group.objects.create(name="clerks")
    ann.groups.add(clerks)
    clerks.permissions.set(Permission.objects.all()[:5])
    assert users.get(groups__name="clerks").check_password("secret")
    assert clerks.permissions.count() == 5
    counts = {"auth.Group_permissions": 5, "auth.User_groups": 1, "auth.Group": 1}
    assert clerks.delete() == (7, counts)
    assert ann.delete()[0] == 1


def test_a_name_that_is_taken_is_an_integrity_error(users):
    users.create_user("ann")
    with pytest.raises(IntegrityError), transaction.atomic():
        users.create_user("ann")
    assert users.get_or_create(username="bob")[1]
    assert not users.get_or_create(username="bob")[1]


def test_many_objects_are_made_counted_and_found(users):
    users.bulk_create([users.model(username=f"user {number}") for number in range(200)])
    assert users.filter(username__startswith="user 1").count() == 111
    assert list(users.values("is_staff").annotate(number=Count("id"))) == [{"is_staff": False, "number": 200}]


def test_a_session_is_kept(users):
    from django.contrib.sessions.backends.db import SessionStore

    session = SessionStore()
    session["answer"] = 42
    session.save()
    assert SessionStore(session.session_key)["answer"] == 42
