"""SQLAlchemy over psycopg 3: its types, its unit of work, its inspector."""

import datetime as dt
import uuid
from decimal import Decimal

import pytest
import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.dialects.postgresql import insert


class Base(orm.DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"

    id: orm.Mapped[int] = orm.mapped_column(sa.BigInteger, sa.Identity(), primary_key=True)
    name: orm.Mapped[uuid.UUID] = orm.mapped_column(server_default=sa.func.gen_random_uuid())
    at: orm.Mapped[dt.datetime] = orm.mapped_column(sa.DateTime(timezone=True), server_default=sa.func.now())
    customer: orm.Mapped[str] = orm.mapped_column(sa.String(40))
    amount: orm.Mapped[Decimal | None] = orm.mapped_column(sa.Numeric(12, 2))
    day: orm.Mapped[dt.date | None]
    hour: orm.Mapped[dt.time | None]
    weight: orm.Mapped[float | None]
    is_paid: orm.Mapped[bool | None]
    picture: orm.Mapped[bytes | None]


def connect(server):
    """The engine, with the tables made: all of them in one transaction."""
    url = f"postgresql+psycopg://test@127.0.0.1:{server.port}/onrush"
    engine = sa.create_engine(url, pool_pre_ping=True)
    Base.metadata.create_all(engine)
    return engine


@pytest.fixture
def engine(server):
    engine = connect(server)
    yield engine
    Base.metadata.drop_all(engine)
    engine.dispose()


def test_objects_come_back_as_they_went(engine):
    order = Order(
        customer="täst",
        amount=Decimal("12.50"),
        day=dt.date(2026, 2, 28),
        hour=dt.time(1, 2, 3),
        weight=0.1,
        is_paid=True,
        picture=b"\x00\xff",
    )
    with orm.Session(engine) as session:
        session.add_all([order, Order(customer="second")])
        session.commit()
    with orm.Session(engine) as session:
        found = session.scalars(sa.select(Order).where(Order.customer == "täst")).one()
        assert (found.id, found.amount, found.day) == (1, Decimal("12.50"), dt.date(2026, 2, 28))
        assert (found.hour, found.weight, found.is_paid, found.picture) == (dt.time(1, 2, 3), 0.1, True, b"\x00\xff")
        assert isinstance(found.name, uuid.UUID) and found.at.tzinfo is not None
        assert session.get(Order, 2).amount is None


def test_many_objects_are_inserted_in_few_statements_and_know_their_keys(engine):
    with orm.Session(engine) as session:
        orders = [Order(customer=f"customer {number}") for number in range(2500)]
        session.add_all(orders)
        session.commit()
        assert len({order.id for order in orders}) == 2500
        found = session.scalar(sa.select(sa.func.count()).where(Order.id.in_([order.id for order in orders])))
        assert found == 2500


def test_objects_are_changed_and_deleted(engine):
    with orm.Session(engine) as session:
        order = Order(customer="first")
        session.add(order)
        session.commit()
        order.customer = "changed"
        session.commit()
        assert session.scalars(sa.select(Order.customer)).all() == ["changed"]
        session.delete(order)
        session.commit()
        assert session.scalars(sa.select(Order)).all() == []


def test_a_taken_key_is_an_integrity_error_or_a_conflict_handled(engine):
    with engine.begin() as connection:
        connection.execute(sa.insert(Order).values(id=1, customer="first"))
    with pytest.raises(sa.exc.IntegrityError) as caught, engine.begin() as connection:
        connection.execute(sa.insert(Order).values(id=1, customer="again"))
    assert caught.value.orig.sqlstate == "23505"
    newer = insert(Order).values(id=1, customer="newer")
    with engine.begin() as connection:
        connection.execute(newer.on_conflict_do_update(index_elements=["id"], set_={"customer": newer.excluded.customer}))
        assert connection.scalars(sa.select(Order.customer)).all() == ["newer"]


def test_a_transaction_is_rolled_back(engine):
    with orm.Session(engine) as session:
        session.add(Order(customer="nobody"))
        session.flush()
        session.rollback()
        assert session.scalar(sa.select(sa.func.count()).select_from(Order)) == 0


def test_a_nested_transaction_is_rolled_back_alone(engine):
    with orm.Session(engine) as session:
        session.add(Order(id=1, customer="kept"))
        session.flush()
        with pytest.raises(sa.exc.IntegrityError), session.begin_nested():
            session.execute(sa.insert(Order).values(id=1, customer="again"))
        session.commit()
        assert session.scalars(sa.select(Order.customer)).all() == ["kept"]


def test_the_inspector_tells_about_tables(engine):
    inspector = sa.inspect(engine)
    assert "orders" in inspector.get_table_names()
    assert inspector.has_table("orders") and not inspector.has_table("nothing")
    columns = {column["name"]: column for column in inspector.get_columns("orders")}
    assert list(columns) == [column.name for column in Order.__table__.columns]
    assert isinstance(columns["id"]["type"], sa.BigInteger) and not columns["id"]["nullable"]
    assert columns["name"]["default"] == "gen_random_uuid()"
    assert columns["customer"]["type"].length == 40 and not columns["customer"]["nullable"]
    assert (columns["amount"]["type"].precision, columns["amount"]["type"].scale) == (12, 2)
    assert columns["at"]["type"].timezone
    key = inspector.get_pk_constraint("orders")
    assert (key["name"], key["constrained_columns"]) == ("orders_pkey", ["id"])
    assert inspector.get_foreign_keys("orders") == []
    assert inspector.get_indexes("orders") == []
    assert inspector.get_unique_constraints("orders") == []
    assert inspector.get_check_constraints("orders") == []
    assert inspector.get_view_names() == []
    assert "public" in inspector.get_schema_names()


def test_tables_are_reflected(engine):
    metadata = sa.MetaData()
    metadata.reflect(engine)
    orders = metadata.tables["orders"]
    assert [column.name for column in orders.primary_key] == ["id"]


def test_the_pool_reconnects_after_a_kill(own_server):
    engine = connect(own_server)
    with orm.Session(engine) as session:
        session.add(Order(customer="kept"))
        session.commit()
    own_server.kill()
    own_server.start()
    with orm.Session(engine) as session:
        assert session.scalars(sa.select(Order.customer)).all() == ["kept"]
    engine.dispose()
